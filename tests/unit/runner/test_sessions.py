"""Runs that outlive the session in which they were started, as logind and systemd-run would have it."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard.runner import sessions

ACCOUNT = pwd.getpwuid(os.getuid()).pw_name
Logind = Callable[..., None]


@pytest.fixture
def logind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Logind]:
    """`logind(kills="yes")`: a loginctl that says so, first on PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def say(kills: str, excluded: str = "", only: str = "", lingers: str = "no") -> None:
        manager = f"echo KillUserProcesses={kills}; echo 'KillExcludeUsers={excluded}'; echo 'KillOnlyUsers={only}'"
        program = tmp_path / "loginctl"
        program.write_text(f"#!/bin/sh\ncase $2 in {ACCOUNT}) echo Linger={lingers};; *) {manager};; esac\n")
        program.chmod(0o755)

    _forget()
    yield say
    _forget()


def _forget() -> None:
    sessions._are_killed.cache_clear()
    sessions._lingers.cache_clear()


@pytest.mark.parametrize(
    ("said", "survives", "scoped"),
    [
        ({"kills": "no"}, True, False),
        ({"kills": "yes"}, False, False),
        ({"kills": "yes", "lingers": "yes"}, True, True),
        ({"kills": "yes", "excluded": f"nobody {ACCOUNT}"}, True, False),
        ({"kills": "yes", "only": "nobody"}, True, False),
        ({"kills": "yes", "only": f"nobody {ACCOUNT}"}, False, False),
    ],
)
def test_what_logind_says_decides(logind: Logind, said: dict[str, str], survives: bool, scoped: bool) -> None:
    logind(**said)
    assert (sessions.are_survived(), "systemd-run" in sessions.outlasting()) == (survives, scoped)


def test_without_logind_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    _forget()
    monkeypatch.setenv("PATH", "/nowhere")
    assert sessions.are_survived()
    assert sessions.outlasting() == []
    _forget()
