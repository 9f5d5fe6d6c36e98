"""Which files below OUTPUT_DIR may hold metrics of this attempt: by their names, and by what was there before it began.

A place that the user named may be anything: a home directory with a million files, one that other runs write to, one
that this attempt's own directory is in. Every look is bounded, and links are not followed.
"""

import os
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

EVENTS, TABLE, LINES, ARRAYS = "events", "table", "lines", "arrays"
OWN_FILE = "metrics.jsonl"  # of the attempt, in the current directory

_MOST_ENTRIES = 20000  # of one look
_MOST_FILES = 1000
_DEEPEST = 12
_BEFORE = 64  # bytes by which a file is known again


class FoundFile(NamedTuple):
    path: bytes  # below the folder
    kind: str
    size: int
    changed: int  # nanoseconds
    inode: int


class Mark(NamedTuple):
    """How a file was when the attempt began."""

    found: FoundFile
    before: bytes  # the last bytes of it


class MetricsFolder:
    def __init__(self, path: bytes) -> None:
        self.path = path
        self._avoided: "Optional[List[Optional[Tuple[int, int]]]]" = None  # runs of this site, this one among them
        self._taken: Dict[bytes, Tuple[int, int]] = {}  # size and time that were seen when it was read to its end
        is_new = path == os.path.join(os.getcwdb(), b"outputs")  # the attempt's own: it was empty at the start
        found, is_all = ([], True) if is_new else self._look()
        # What could not be looked through is known by time: the runner wrote this file just now.
        self._begun = 0 if is_all else _changed(b"started/runner.json")
        self._marks = {file.path: Mark(file, _last_bytes(os.path.join(path, file.path), file)) for file in found}

    def written(self) -> List[FoundFile]:
        """What this attempt wrote, or wrote to, in a fixed order."""
        found, _ = self._look()
        return sorted(file for file in found if self._is_ours(file))

    def is_done(self, file: FoundFile) -> bool:
        return self._taken.get(file.path) == (file.size, file.changed)

    def done(self, file: FoundFile) -> None:
        """It was read as far as it went when it was found."""
        self._taken[file.path] = (file.size, file.changed)

    def beginning(self, file: FoundFile) -> Tuple[int, bytes]:
        """Where this attempt's part of it begins, and the bytes before that."""
        mark = self._marks.get(file.path)
        if mark is None or mark.found.inode != file.inode or file.size <= mark.found.size:
            return 0, b""  # new, or written anew
        return mark.found.size, mark.before

    def _is_ours(self, file: FoundFile) -> bool:
        mark = self._marks.get(file.path)
        return mark.found != file if mark is not None else file.changed >= self._begun

    def _look(self) -> Tuple[List[FoundFile], bool]:
        """The files, and whether these are all."""
        found: List[FoundFile] = []
        for seen, (path, entry) in enumerate(self._walk(), 1):
            kind = kind_of(entry.name)
            if kind is not None and entry.is_file(follow_symlinks=False):
                file = _describe(path, kind, entry)
                if file is not None and not _is_own(file):
                    found.append(file)
            if seen >= _MOST_ENTRIES or len(found) >= _MOST_FILES:
                return found, False
        return found, True

    def _walk(self) -> "Iterator[Tuple[bytes, os.DirEntry[bytes]]]":
        """What is near the top comes first."""
        waiting = [(b"", 0)]
        for folder, depth in waiting:
            try:
                entries = os.scandir(os.path.join(self.path, folder))
            except OSError:
                continue
            with entries:
                for entry in entries:
                    path = os.path.join(folder, entry.name)
                    yield path, entry
                    if depth < _DEEPEST and self._may_enter(entry):
                        waiting.append((path, depth + 1))

    def _may_enter(self, entry: "os.DirEntry[bytes]") -> bool:
        if entry.name.startswith((b".", b"__")) or not entry.is_dir(follow_symlinks=False):
            return False
        if self._avoided is None:
            self._avoided = [_identity(place) for place in (b".", b"../..")]
        inodes = [place[1] for place in self._avoided if place is not None]
        return entry.inode() not in inodes or _identity(entry.path) not in self._avoided


def kind_of(name: bytes) -> Optional[str]:
    name = name.lower()
    if b"tfevents" in name:
        return EVENTS
    if name.endswith(b".csv") or name == b"training.log":  # as the manual of Keras calls it
        return TABLE
    if name.endswith(b"metrics.jsonl"):
        return LINES
    return ARRAYS if name.endswith(b".npz") else None


def open_file(path: bytes) -> int:
    """Neither through a link nor waiting for a pipe: the user may have put one in the file's place meanwhile."""
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)


def _describe(path: bytes, kind: str, entry: "os.DirEntry[bytes]") -> Optional[FoundFile]:
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    return FoundFile(path, kind, facts.st_size, facts.st_mtime_ns, facts.st_ino)


def _last_bytes(path: bytes, file: FoundFile) -> bytes:
    """Of one that may be written anew. Event files never are, and there are many of them."""
    if file.kind not in (TABLE, LINES):
        return b""
    try:
        descriptor = open_file(path)
    except OSError:
        return b""
    try:
        return os.pread(descriptor, min(_BEFORE, file.size), max(0, file.size - _BEFORE))
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _is_own(file: FoundFile) -> bool:
    """The very file that metrics are written to."""
    own = _identity(OWN_FILE.encode()) if file.kind == LINES else None
    return own is not None and own[1] == file.inode


def _changed(path: bytes) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _identity(path: bytes) -> Optional[Tuple[int, int]]:
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
