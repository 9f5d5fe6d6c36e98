"""Checkpoints of a run: whether anything is new, whether the disk is full, and which files to prune."""

import os
import re
from typing import Dict, Iterable, Iterator, Optional, Tuple

_MOST_FILES = 20000  # beyond that many a change is still seen in those that were looked at
_NO_ROOM = 1 << 20  # bytes: with less, nothing of any use can be saved

State = Dict[bytes, Tuple[int, int]]


def look(directory: bytes) -> State:
    """Time and size of each file below the directory. An attempt that changed none saved nothing new."""
    found: State = {}
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            try:
                facts = os.stat(path)
            except OSError:
                continue
            found[path] = (facts.st_mtime_ns, facts.st_size)
            if len(found) >= _MOST_FILES:
                return found
    return found


def full(directories: Iterable[bytes]) -> Optional[bytes]:
    """The first of them whose disk is full."""
    for directory in directories:
        try:
            disk = os.statvfs(directory)
        except OSError:
            continue
        if disk.f_bavail * disk.f_frsize < _NO_ROOM or (disk.f_files > 0 and disk.f_favail == 0):
            return directory
    return None


def prune(directory: bytes, pattern: str, keep: int) -> None:
    """Keep the newest of the files and folders that match the pattern. What cannot be deleted is tried again the next
    time."""
    ages = sorted(((_newest(path), path) for path in _named(directory, re.compile(pattern, re.DOTALL))), reverse=True)
    for _, path in ages[keep:]:
        _remove(path)


def _named(root: bytes, pattern: "re.Pattern[str]") -> Iterator[bytes]:
    """A folder that is named is one thing, whatever is in it."""
    for folder, folders, names in os.walk(root):
        for name in list(folders) + names:
            path = os.path.join(folder, name)
            if pattern.fullmatch(os.path.relpath(path, root).decode("utf-8", "surrogateescape")):
                yield path
                if name in folders:
                    folders.remove(name)


def _newest(path: bytes) -> int:
    times = [time for time, _ in look(path).values()]
    try:
        return max(times or [os.lstat(path).st_mtime_ns])
    except OSError:
        return 0


def _remove(path: bytes) -> None:
    import shutil  # here: few runs ask for this

    try:
        os.unlink(path)
    except OSError:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
