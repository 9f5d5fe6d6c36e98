"""Attempts that are settled, where not everything can be removed or looked at. As somebody who is not root."""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard.hosts.far import attempt_cleanup
from runyard.hosts.far.cache import CacheFiles

NOBODY = 65534
EVERYTHING = ("log", "outputs/model", "spec.json", "work/notes")


@pytest.fixture
def site() -> Iterator[Path]:
    """A directory that anybody may come to."""
    place = Path(tempfile.mkdtemp(dir="/var/tmp"))
    place.chmod(0o777)
    yield place
    shutil.rmtree(place, ignore_errors=True)


def as_somebody(work: Callable[[], None]) -> None:
    child = os.fork()
    if not child:
        try:
            if os.getuid() == 0:
                os.setuid(NOBODY)
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def make(site: Path) -> Path:
    home = site / "runs" / "1" / "a1"
    for name in EVERYTHING:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(b"x")
    return home


def leave(site: Path, *kept: str | int | None) -> None:
    cache, runs = CacheFiles(os.fsencode(site / "cache"), "one"), os.fsencode(site / "runs")
    attempt_cleanup.leave(cache, runs, {"1-a1": list(kept)} if kept else {}, lambda: None)


def left(home: Path) -> set[str]:
    return {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}


def test_what_could_not_go_at_once_goes_later_and_nothing_else_does(site: Path) -> None:
    def work() -> None:
        home = make(site)
        home.chmod(0o500)
        leave(site, "outputs", None)
        assert left(home) == set(EVERYTHING)
        home.chmod(0o700)
        (site / "cache" / "kept" / "looked").unlink()
        leave(site)
        assert left(home) == {"outputs/model", "work/notes"}
        assert os.listdir(site / "cache" / "kept") == ["looked"]

    as_somebody(work)


def test_what_cannot_be_looked_at_is_not_empty(site: Path) -> None:
    def work() -> None:
        home = make(site)
        (home / "work").chmod(0)
        leave(site, "unsaved", None)
        (home / "work").chmod(0o700)
        assert left(home) == {"work/notes"}

    as_somebody(work)
