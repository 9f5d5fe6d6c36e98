"""What comes back of an output directory, and what does not."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from runyard import errors
from runyard.agent import outputs
from runyard.agent.outputs import Collected, Place, collect, matcher
from tests.integration.agent.fake_yard import FakeYard


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "outputs"
    directory.mkdir()
    return directory


def write(root: Path, name: str, text: str = "x") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def bring(root: Path, yard: FakeYard | None = None, *globs: str, since_ns: int | None = None) -> Collected:
    return collect(Place(directory=str(root), globs=globs or ("**",), since_ns=since_ns), yard or FakeYard())


def names(collected: Collected) -> list[str]:
    return [entry["path"] for entry in collected.files]


def test_files_come_with_size_digest_and_mode(root: Path) -> None:
    write(root, "model/weights.bin", "abc").chmod(0o640)
    yard = FakeYard()
    [entry] = bring(root, yard).files
    digest = "sha256:" + hashlib.sha256(b"abc").hexdigest()
    assert entry == {"path": "model/weights.bin", "size": 3, "digest": digest, "mode": 0o640}
    assert yard.blobs == {digest: b"abc"}


def test_equal_files_are_sent_once_and_known_ones_never(root: Path) -> None:
    write(root, "a", "same")
    write(root, "b", "same")
    sent: list[str] = []

    class Counting(FakeYard):
        def put_blob(self, digest: str, path: Path, movable: bool) -> None:
            sent.append(digest)
            super().put_blob(digest, path, movable)

    yard = Counting()
    assert names(bring(root, yard)) == ["a", "b"]
    assert names(bring(root, yard)) == ["a", "b"]
    assert len(sent) == 1


def test_symbolic_links_are_neither_taken_nor_followed(root: Path, tmp_path: Path) -> None:
    secret = write(tmp_path, "secret", "not an output")
    write(tmp_path, "elsewhere/file")
    (root / "link").symlink_to(secret)
    (root / "directory").symlink_to(tmp_path / "elsewhere")
    (root / "loop").symlink_to(root)
    write(root, "real")
    assert names(bring(root)) == ["real"]


def test_only_regular_files_come(root: Path) -> None:
    os.mkfifo(root / "pipe")
    write(root, "real")
    assert names(bring(root)) == ["real"]


def test_names_that_are_not_text_are_told(root: Path) -> None:
    Path(os.fsdecode(os.fsencode(root) + b"/\xff\xfe")).write_text("x")
    write(root, "ünïcode €")
    collected = bring(root)
    assert names(collected) == ["ünïcode €"]
    assert collected.notes == ["1 outputs left out: their names are not UTF-8"]


def test_what_was_there_before_stays(root: Path) -> None:
    old, new = write(root, "old"), write(root, "new")
    os.utime(old, ns=(1_000, 1_000))
    assert names(bring(root, since_ns=new.stat().st_mtime_ns)) == ["new"]


def test_in_its_own_directory_old_times_do_not_matter(root: Path) -> None:
    os.utime(write(root, "copied with cp -p"), ns=(1_000, 1_000))
    assert names(bring(root)) == ["copied with cp -p"]


def test_a_file_that_vanishes_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "a")
    walk = outputs._walk

    def vanishing(directory: str, below: str) -> Iterable[str]:
        found = list(walk(directory, below))
        (root / "a").unlink(missing_ok=True)
        return found

    monkeypatch.setattr(outputs, "_walk", vanishing)
    collected = bring(root)
    assert collected.files == []
    assert "no such file" in collected.notes[0]


def test_a_file_that_changes_while_it_is_sent_is_told(root: Path) -> None:
    path = write(root, "a", "before")

    class Late(FakeYard):
        def put_blob(self, digest: str, source: Path, movable: bool) -> None:
            path.write_text("after")
            super().put_blob(digest, source, movable)

    collected = bring(root, Late())
    assert collected.files == []
    assert collected.notes == ["output left out: a changed while it was read"]


def test_a_yard_that_is_away_is_an_error(root: Path) -> None:
    write(root, "a")
    yard = FakeYard()
    yard.reachable = False
    with pytest.raises(errors.YardUnreachable):
        bring(root, yard)


def test_more_files_than_anybody_wants_are_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "MOST_FILES", 2)
    for number in range(5):
        write(root, f"f{number}")
    collected = bring(root)
    assert names(collected) == ["f0", "f1"]
    assert "3 outputs left out" in collected.notes[0]


def test_a_missing_directory_has_no_outputs(tmp_path: Path) -> None:
    assert bring(tmp_path / "none").files == []
    assert outputs.is_empty(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("glob", "path", "named"),
    [
        ("**", "a/b/.hidden", True),
        ("*.pt", "model.pt", True),
        ("*.pt", "deep/model.pt", False),
        ("**/*.pt", "deep/er/model.pt", True),
        ("**/*.pt", "model.pt", True),
        ("a/**", "a/b/c", True),
        ("a/**", "ab/c", False),
        ("model", "model/weights/1.bin", True),
        ("model/", "model/1.bin", True),
        ("./a.txt", "a.txt", True),
        ("step-?", "step-1", True),
        ("step-?", "step-10", False),
        ("step-[0-9]", "step-7", True),
        ("step-[!0-9]", "step-7", False),
        ("step-[!0-9]", "step-x", True),
        ("a[b", "a[b", True),
        ("a[z-a]", "ab", False),
        ("x[[]y", "x[y", True),
        ("a.b", "aXb", False),
        ("a\nb", "a\nb", True),
    ],
)
def test_globs(glob: str, path: str, named: bool) -> None:
    assert matcher([glob])(path) is named


def test_no_glob_names_nothing() -> None:
    assert not matcher([])("a")
