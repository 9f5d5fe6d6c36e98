"""What comes back of an output directory, and what does not."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from runyard import errors
from runyard.agent.report import outputs
from runyard.agent.report.outputs import Collected, OutputDirectory
from runyard.hosts.base import OutputSearch
from runyard.hosts.local import LocalHost
from runyard.model import globs
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


def place(root: Path, *named: str) -> OutputDirectory:
    return OutputDirectory(search=OutputSearch(directory=str(root), pattern=globs.pattern(named or ("**",))), own=True)


def bring(root: Path, yard: FakeYard | None = None, *globs: str) -> Collected:
    host = LocalHost()
    [collected] = outputs.hand_over(host, yard or FakeYard(), outputs.find(host, [place(root, *globs)]))
    return collected


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


def test_in_its_own_directory_old_times_do_not_matter(root: Path) -> None:
    os.utime(write(root, "copied with cp -p"), ns=(1_000, 1_000))
    assert names(bring(root)) == ["copied with cp -p"]


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


def test_a_missing_directory_has_no_outputs(tmp_path: Path) -> None:
    assert bring(tmp_path / "none").files == []


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
    assert bool(re.fullmatch(globs.pattern([glob]), path, re.DOTALL)) is named


def test_no_glob_names_nothing() -> None:
    assert not re.fullmatch(globs.pattern([]), "a")


def test_outputs_of_many_attempts_are_handed_over_together(tmp_path: Path) -> None:
    asked: list[set[str]] = []

    class Counting(FakeYard):
        def missing_blobs(self, digests: Iterable[str]) -> set[str]:
            asked.append(set(digests))
            return super().missing_blobs(asked[-1])

    host, yard = LocalHost(), Counting()
    for number in range(3):
        write(tmp_path, f"{number}/own", str(number))
        write(tmp_path, f"{number}/shared", "same")
    found = outputs.find(host, [place(tmp_path / str(number)) for number in range(3)])
    assert [names(collected) for collected in outputs.hand_over(host, yard, found)] == [["own", "shared"]] * 3
    assert [len(digests) for digests in asked] == [4]
    assert sorted(yard.blobs.values()) == [b"0", b"1", b"2", b"same"]


def test_portions_are_as_large_as_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "TOGETHER", 10)
    assert list(outputs.portions([3, 7, 1, 20, 5, 5, 1], lambda size: size)) == [[3, 7], [1], [20], [5, 5], [1]]
    assert list(outputs.portions([], len)) == []


def test_a_disk_that_is_full_is_no_file_that_changed(root: Path) -> None:
    """A yard in this process tells it in the words of the system."""
    write(root, "a")

    class Full(FakeYard):
        def put_blob(self, digest: str, path: Path, movable: bool) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(errors.DiskFull):
        bring(root, Full())


class Forgetful(FakeYard):
    """Removes something while it is sent something else."""

    forgets = ""

    def put_blob(self, digest: str, path: Path, movable: bool) -> None:
        super().put_blob(digest, path, movable)
        self.blobs.pop(self.forgets, None)
        self.forgets = ""


def test_what_the_yard_had_is_asked_for_again_after_a_long_transfer(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "ASK_AGAIN_S", -1.0)
    write(root, "known", "known")
    write(root, "new", "new")
    yard = Forgetful()
    yard.forgets = yard.store(b"known")
    assert names(bring(root, yard)) == ["known", "new"]
    assert sorted(yard.blobs.values()) == [b"known", b"new"]
