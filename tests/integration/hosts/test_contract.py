"""What every host promises, over SSH."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.hosts.ssh import SshHost
from runyard.testing.host_contract import HostContract
from tests.labs.sshd import SshLab


class TestSsh(HostContract):
    @pytest.fixture
    def host(self, lab: SshLab, spool: Path) -> SshHost:
        return SshHost(lab.names, spool, config=str(lab.configuration))

    @pytest.fixture
    def place(self, far_directory: str) -> str:
        return far_directory


class TestSshWithStandingLines(HostContract):
    @pytest.fixture
    def host(self, lab: SshLab, spool: Path) -> Iterator[SshHost]:
        made = SshHost(lab.names, spool, config=str(lab.configuration), standing=True)
        yield made
        made.close()

    @pytest.fixture
    def place(self, far_directory: str) -> str:
        return far_directory
