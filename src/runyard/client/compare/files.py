"""What differs between two snapshots of code, with the lines of small texts."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from runyard.model.tree import Tree, TreeFile

LARGEST_TEXT = 256 << 10  # bytes of a file whose lines are compared
MOST_TEXTS = 200  # files whose lines are compared
MOST_LINES = 1000  # of one file's difference

Read = Callable[[str], bytes | None]  # a file by its digest; None: it is not to be had any more


@dataclass(frozen=True, kw_only=True, slots=True)
class FileChange:
    path: str
    change: str  # added, removed, changed, mode
    diff: str | None = None  # unified; None: it is large, no text, or gone

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "change": self.change, "diff": self.diff}


def compare(before: Tree | None, after: Tree | None, read: Read) -> tuple[FileChange, ...]:
    """By path. A missing snapshot has no files."""
    return tuple(_changes(before or Tree(files=()), after or Tree(files=()), _Texts(read)))


def compare_texts(name: str, before: str | None, after: str | None) -> tuple[FileChange, ...]:
    """For a text that is not a file of a folder."""
    if before == after:
        return ()
    change = "added" if before is None else "removed" if after is None else "changed"
    lines = [None if text is None else text.splitlines(keepends=True) for text in (before, after)]
    return (FileChange(path=name, change=change, diff=_unified(name, *lines)),)


class _Texts:
    """Reads small files, up to a maximum number."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._left = MOST_TEXTS

    def difference(self, path: str, before: TreeFile | None, after: TreeFile | None) -> str | None:
        if self._left <= 0 or any(file is not None and file.size > LARGEST_TEXT for file in (before, after)):
            return None
        self._left -= 1
        try:
            return _unified(path, self._lines(before), self._lines(after))
        except ValueError:
            return None

    def _lines(self, file: TreeFile | None) -> list[str] | None:
        """None for a file that does not exist; raises ValueError if the file is no text."""
        if file is None:
            return None
        data = self._read(file.digest)
        if data is None or b"\0" in data:
            raise ValueError(file.path)
        return data.decode("utf-8").splitlines(keepends=True)


def _unified(name: str, before: list[str] | None, after: list[str] | None) -> str:
    names = ("/dev/null" if before is None else f"a/{name}", "/dev/null" if after is None else f"b/{name}")
    lines = [line.rstrip("\n") for line in difflib.unified_diff(before or [], after or [], *names)]
    rest = len(lines) - MOST_LINES
    return "\n".join(lines if rest <= 0 else [*lines[:MOST_LINES], f"… {rest} lines more"])


def _changes(before: Tree, after: Tree, texts: _Texts) -> Iterator[FileChange]:
    old, new = {file.path: file for file in before.files}, {file.path: file for file in after.files}
    for path in sorted(old.keys() | new.keys()):
        one, two = old.get(path), new.get(path)
        if one == two:
            continue
        if one is not None and two is not None and one.digest == two.digest:
            yield FileChange(path=path, change="mode")
            continue
        change = "added" if one is None else "removed" if two is None else "changed"
        yield FileChange(path=path, change=change, diff=texts.difference(path, one, two))
    yield from _link_changes(dict(before.links), dict(after.links))


def _link_changes(old: dict[str, str], new: dict[str, str]) -> Iterator[FileChange]:
    """A link is compared as a text of one line: where it leads."""
    for path in sorted(old.keys() | new.keys()):
        yield from compare_texts(path, old.get(path), new.get(path))
