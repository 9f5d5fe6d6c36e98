"""What every host promises: this machine, and the far half of another one under the oldest Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.hosts.local import LocalHost
from runyard.hosts.ssh import SshHost
from runyard.testing.host_contract import HostContract
from tests.labs import components

# What ssh does, without the way: the command goes to a shell as one line.
SSH = """#!/bin/sh
case " $* " in *" -N "* | *" -G "*) exit 0 ;; esac
for line; do :; done
exec sh -c "$line"
"""


class TestLocal(HostContract):
    @pytest.fixture
    def host(self) -> LocalHost:
        return LocalHost()

    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return str(tmp_path)


@pytest.mark.component("python3.6")
class TestFarHalfUnderTheOldestPython(HostContract):
    """In the C locale, where the texts of such a Python cannot name every file."""

    @pytest.fixture
    def host(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SshHost:
        program = tmp_path / "bin" / "ssh"
        program.parent.mkdir()
        program.write_text(SSH)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        monkeypatch.setenv("LC_ALL", "C")
        return SshHost(["here"], tmp_path / "spool", python=str(components.python("3.6")))

    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return str(tmp_path)
