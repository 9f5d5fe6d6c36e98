"""A blob store in a directory, as the two servers that share it."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from runyard import errors
from runyard.blobs import open_blobs
from runyard.blobs.directory import DirectoryBlobs, DirectoryFiles
from runyard.blobs.writer import KEPT_S
from runyard.testing.blob_contract import BlobContract, Servers, digest, fresh_key, whole


class TestDirectory(BlobContract):
    @pytest.fixture
    def servers(self, tmp_path: Path) -> Servers:
        shared = str(tmp_path / "shared")
        return open_blobs(shared, tmp_path / "home1"), open_blobs(shared, tmp_path / "home2")


@pytest.fixture
def blobs(tmp_path: Path) -> DirectoryBlobs:
    return DirectoryBlobs(tmp_path / "blobs")


def leftovers(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "blobs" / "incoming").iterdir()]


def test_without_a_location_it_is_in_the_home(tmp_path: Path) -> None:
    store = open_blobs("", tmp_path)
    name = store.blobs.add([b"data"])
    store.files.append(fresh_key(), "log", 0, b"line\n")
    assert (tmp_path / "blobs" / name[7:9] / name[9:]).read_bytes() == b"data"
    assert (tmp_path / "logs").is_dir()


@pytest.mark.parametrize("location", ["shared", "./shared", "ftp://host/path"])
def test_a_location_that_is_no_absolute_path(tmp_path: Path, location: str) -> None:
    with pytest.raises(errors.ConfigError, match="neither an absolute path nor an s3:// address"):
        open_blobs(location, tmp_path)


def test_a_location_that_cannot_be_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.BlobStoreError, match=r"file cannot store blobs: Not a directory"):
        open_blobs(str(tmp_path / "file"), tmp_path)


def test_nothing_is_left_of_what_went_wrong(blobs: DirectoryBlobs, tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidInput):
        blobs.put(digest(b"data"), [b"other"])
    blobs.append_partial(digest(b"data"), 5, 0, b"other")
    with pytest.raises(errors.InvalidInput):
        blobs.commit_partial(digest(b"data"), 5)
    blobs.put(digest(b"data"), [b"data"])
    blobs.put(digest(b"data"), [b"data"])
    assert leftovers(tmp_path) == []


def test_what_was_left_a_week_ago_is_cleared(blobs: DirectoryBlobs, tmp_path: Path) -> None:
    for data in (b"old", b"new"):
        blobs.append_partial(digest(data), 3, 0, data[:1])
    old = tmp_path / "blobs" / "incoming" / (digest(b"old").removeprefix("sha256:") + ".3")
    os.utime(old, (old.stat().st_mtime - KEPT_S - 60,) * 2)
    again = DirectoryBlobs(tmp_path / "blobs")
    assert [again.append_partial(digest(data), 3, 0, b"") for data in (b"old", b"new")] == [0, 1]


def test_a_blob_that_is_there_stays_the_same_file(blobs: DirectoryBlobs) -> None:
    """A reader over NFS would lose the file under its hands."""
    name = blobs.add([b"data"])
    before = blobs.path(name).stat().st_ino
    blobs.put(name, [b"data"])
    assert blobs.path(name).stat().st_ino == before


def test_a_linked_file_cannot_be_edited_in_place(blobs: DirectoryBlobs, tmp_path: Path) -> None:
    path = tmp_path / "output"
    path.write_bytes(b"data")
    blobs.adopt(digest(b"data"), path, link=True)
    assert blobs.path(digest(b"data")).stat().st_ino == path.stat().st_ino
    assert not stat.S_IMODE(path.stat().st_mode) & 0o222


def test_who_sends_more_after_the_commit_writes_nothing_into_the_blob(blobs: DirectoryBlobs, tmp_path: Path) -> None:
    name = digest(b"data")
    blobs.append_partial(name, 4, 0, b"data")
    blobs.commit_partial(name, 4)
    assert blobs.append_partial(name, 4, 4, b"more") == 4
    assert whole(blobs, name) == b"data"
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("as_promised", [True, False])
def test_nobody_waits_while_a_large_upload_is_read(
    blobs: DirectoryBlobs, monkeypatch: pytest.MonkeyPatch, as_promised: bool
) -> None:
    """What is asked meanwhile is answered, and what is sent meanwhile does not land in what is being checked."""
    name, sent = digest(b"data"), b"data" if as_promised else b"Data"
    begun, go_on, read = threading.Event(), threading.Event(), hashlib.file_digest

    def slowly(*given: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return read(*given)

    blobs.append_partial(name, 4, 0, sent)
    monkeypatch.setattr(hashlib, "file_digest", slowly)
    with ThreadPoolExecutor(2) as pool:
        committed = pool.submit(blobs.commit_partial, name, 4)
        try:
            assert begun.wait(60)
            assert pool.submit(blobs.append_partial, name, 4, 4, b"").result(60) == 4
        finally:
            go_on.set()
        assert isinstance(committed.exception(60), errors.InvalidInput) != as_promised
    assert blobs.has(name) == as_promised


def test_a_full_disk_is_told_as_such(tmp_path: Path) -> None:
    files = DirectoryFiles(tmp_path)
    key = fresh_key()
    files.path(key, "log").parent.mkdir(parents=True)
    os.symlink("/dev/full", files.path(key, "log"))
    with pytest.raises(errors.DiskFull, match="cannot be written: No space left on device"):
        files.append(key, "log", 0, b"x")
