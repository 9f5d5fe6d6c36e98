"""Where shared connections are kept."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from runyard.hosts import logins


def test_sockets_are_kept_privately_where_the_session_keeps_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Path("/tmp", f"ry-runtime-{os.getpid()}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    runtime.mkdir()
    try:
        place = logins.socket_directory()
        assert (place, stat.S_IMODE(place.stat().st_mode)) == (runtime / "runyard", 0o700)
        place.rmdir()
    finally:
        runtime.rmdir()


@pytest.mark.parametrize("runtime", [None, "", "/nowhere", "/tmp/" + "long" * 30])
def test_without_such_a_place_they_are_kept_in_a_short_one(
    monkeypatch: pytest.MonkeyPatch, runtime: str | None
) -> None:
    if runtime is None:
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    else:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    place = logins.socket_directory()
    assert place == logins.socket_directory() == Path(f"/tmp/runyard-{os.getuid()}")
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o701, 0o720, 0o777])
def test_a_place_that_others_may_enter_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int) -> None:
    runtime = Path("/tmp", f"ry-runtime-{os.getpid()}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    (runtime / "runyard").mkdir(parents=True)
    (runtime / "runyard").chmod(mode)
    try:
        assert logins.socket_directory() != runtime / "runyard"
    finally:
        (runtime / "runyard").rmdir()
        runtime.rmdir()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Path("/tmp", f"ry-runtime-{os.getpid()}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    runtime.mkdir()
    (runtime / "runyard").symlink_to(tmp_path)
    try:
        assert logins.socket_directory() != runtime / "runyard"
    finally:
        (runtime / "runyard").unlink()
        runtime.rmdir()
