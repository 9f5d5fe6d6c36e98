"""Outputs of a run: find them, compute their digests, and read them from any offset."""

import errno
import hashlib
import os
import re
import stat
import time
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Optional, Tuple

from . import files

CHUNK = 1 << 20
MOST_NOTES = 10  # of folders that cannot be seen
SETTLED_S = 2.0  # a file that was changed later than that may change again and have the same time

Json = Dict[str, Any]
Beat = Callable[[], None]  # called while work goes on that may take long


def find(search: Json, beat: Beat) -> Iterator[Json]:
    """Describes every regular file that the pattern names, or says in a `note` what is left out and why; `torn` is a
    file that was written to while it was read, if only complete ones are requested."""
    root, taken, beyond, unreadable = files.encode(search["directory"]), 0, 0, 0
    unseen = []  # type: List[Json]
    for path in _wanted(root, search, unseen, beat):
        text = _text(path)
        if text is None:
            unreadable += 1
        elif taken == search["most"]:
            beyond += 1
        else:
            found = _describe(root, path, text, search, beat)
            taken += "path" in found
            yield found
    for note in unseen[:MOST_NOTES]:
        yield note
    if unreadable:
        yield {"note": "%d outputs left out: their names are not UTF-8" % unreadable}
    if beyond:
        yield {"note": "%d outputs left out: at most %d files come back" % (beyond, taken)}


def stream(path: bytes, offset: int, size: int) -> Iterator[bytes]:
    """The bytes from the offset on, up to that size."""
    with _open(path) as file:
        file.seek(offset)
        while offset < size:
            chunk = file.read(min(CHUNK, size - offset))
            if not chunk:
                return
            offset += len(chunk)
            yield chunk


def _wanted(root: bytes, search: Json, unseen: List[Json], beat: Beat) -> Iterator[bytes]:
    pattern, since = re.compile(search["pattern"], re.DOTALL), _since(search["newer_than"])
    for path in _walk(root, unseen, beat):
        if not pattern.fullmatch(path.decode("utf-8", "surrogateescape")):
            continue
        if since is None or _changed(os.path.join(root, path)) >= since:
            yield path


def _since(marks: List[str]) -> Optional[int]:
    """When the first of these files that exists was changed: by the same clock that outputs are compared with."""
    if not marks:
        return None
    moments = (_changed(files.encode(mark)) for mark in marks)
    return next((moment for moment in moments if moment >= 0), 0)


def _changed(path: bytes) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return -1


def _walk(root: bytes, unseen: List[Json], beat: Beat) -> Iterator[bytes]:
    """Regular files in a fixed order. Symbolic links are neither followed nor included: they may lead outside."""
    waiting = [(b"", True)]
    while waiting:
        path, is_folder = waiting.pop()
        beat()
        if is_folder:
            waiting += reversed(_inside(root, path, unseen))
        else:
            yield path


def _inside(root: bytes, folder: bytes, unseen: List[Json]) -> List[Tuple[bytes, bool]]:
    """Files and folders; an unreadable one is noted."""
    try:
        with os.scandir(os.path.join(root, folder)) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            shown = (folder or root).decode("utf-8", "replace")
            unseen.append({"note": "outputs left out: %s: %s" % (shown, (error.strerror or str(error)).lower())})
        return []
    kinds = [(os.path.join(folder, entry.name), entry.is_dir(follow_symlinks=False), entry) for entry in found]
    return [(path, is_dir) for path, is_dir, entry in kinds if is_dir or entry.is_file(follow_symlinks=False)]


def _describe(root: bytes, path: bytes, text: str, search: Json, beat: Beat) -> Json:
    try:
        with _open(os.path.join(root, path)) as file:
            before = os.fstat(file.fileno())
            size, digest = _remembered(search, text, before) or _read_through(file, beat)
            after = os.fstat(file.fileno())
    except OSError as error:
        return {"note": "output left out: %s: %s" % (text, (error.strerror or str(error)).lower())}
    if search.get("whole") and (size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        return {"torn": text}
    is_settled = abs(time.time() - after.st_mtime) > SETTLED_S
    changed = before.st_mtime_ns if is_settled else 0
    return {"path": text, "size": size, "digest": digest, "mode": stat.S_IMODE(before.st_mode), "changed": changed}


def _remembered(search: Json, text: str, found: os.stat_result) -> Optional[Tuple[int, str]]:
    size, changed, digest = (search.get("known") or {}).get(text, (-1, 0, ""))
    return (size, digest) if changed and (size, changed) == (found.st_size, found.st_mtime_ns) else None


def _read_through(file: BinaryIO, beat: Beat) -> Tuple[int, str]:
    total, size = hashlib.sha256(), 0
    for chunk in iter(lambda: file.read(CHUNK), b""):
        total.update(chunk)
        size += len(chunk)
        beat()
    return size, "sha256:" + total.hexdigest()


def _open(path: bytes) -> BinaryIO:
    """Not blocking, because a pipe may have replaced the file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file")


def _text(path: bytes) -> Optional[str]:
    try:
        return path.decode()
    except UnicodeDecodeError:
        return None
