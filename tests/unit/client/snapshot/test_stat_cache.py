"""A folder that did not change is looked at, not read."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from runyard.client.snapshot import Camera, reading
from tests.unit.client.snapshot.conftest import code, write


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were read."""
    seen: list[str] = []
    real = reading.read_digest

    def read(place: Path, shown: str) -> tuple[str, os.stat_result]:
        seen.append(shown)
        return real(place, shown)

    monkeypatch.setattr(reading, "read_digest", read)
    return seen


def settle(folder: Path) -> None:
    """Files as they are some seconds after their last change. Their change times are the kernel's, so it takes real
    time."""
    newest = max(path.stat().st_ctime_ns for path in folder.rglob("*"))
    while time.time_ns() <= newest + 2_100_000_000:
        time.sleep(0.05)


def test_only_what_changed_is_read_again(project: Path, camera: Camera, reads: list[str]) -> None:
    write(project, {"a.py": "a", "b.py": "b", "c.py": "c"})
    settle(project)
    first = code(project, camera)
    assert sorted(reads) == ["a.py", "b.py", "c.py"]
    reads.clear()
    assert code(project, camera).tree == first.tree
    assert reads == []
    write(project, {"b.py": "B"})
    second = code(project, camera)
    assert reads == ["b.py"]
    assert second.tree.files[1].digest == f"sha256:{hashlib.sha256(b'B').hexdigest()}"


def test_a_change_that_keeps_size_and_times_is_seen(project: Path, camera: Camera, reads: list[str]) -> None:
    write(project, {"a.py": "old"})
    settle(project)
    before = code(project, camera).tree
    kept = (project / "a.py").stat()
    write(project, {"a.py": "new"})
    os.utime(project / "a.py", ns=(kept.st_atime_ns, kept.st_mtime_ns))
    assert code(project, camera).tree != before


def test_a_young_file_is_not_trusted(project: Path, camera: Camera, reads: list[str]) -> None:
    for _ in range(20):  # on a busy machine it may be old before it is looked at
        write(project, {"a.py": "a"})
        reads.clear()
        code(project, camera)
        code(project, camera)
        if reads == ["a.py", "a.py"]:
            break
    assert reads == ["a.py", "a.py"]


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"a.py": 3}', b'{"a.py": []}', b"\xff"])
def test_a_damaged_cache_costs_time_only(project: Path, camera: Camera, damage: bytes) -> None:
    write(project, {"a.py": "a"})
    settle(project)
    first = code(project, camera)
    assert camera.cache is not None
    for cached in camera.cache.iterdir():
        cached.write_bytes(damage)
    assert code(project, camera).tree == first.tree


def test_a_folder_is_remembered_as_it_was_read_last(project: Path, camera: Camera) -> None:
    write(project, {"a.py": "a"})
    first = code(project, camera)
    write(project, {"a.py": "b"})
    assert (first.before, code(project, camera).before) == (b"", first.tree.encode())


def test_a_cache_that_cannot_be_written_costs_time_only(project: Path, tmp_path: Path) -> None:
    write(project, {"a.py": "a"})
    (tmp_path / "file").write_text("in the way")
    assert code(project, Camera(cache=tmp_path / "file" / "cache")).tree.size == 1


def test_caches_that_nobody_used_for_long_are_removed(project: Path, camera: Camera) -> None:
    write(project, {"a.py": "a"})
    settle(project)
    assert camera.cache is not None
    camera.cache.mkdir()
    old = camera.cache / "old.json"
    old.write_text("{}")
    os.utime(old, (1, 1))
    code(project, camera)
    assert not old.exists()
