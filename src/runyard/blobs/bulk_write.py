"""Write many small files at once.

Syncing each file before the next one makes the file system commit its journal for each of them. So all files are
written, then synced, then renamed. Writeback of all files is started before the first sync, which then covers most of
the others.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from runyard.blobs.base import Content

OPEN_AT_ONCE = 200
SYNCS = 8  # at a time: concurrent syncs share a commit
_BEGIN = 2  # SYNC_FILE_RANGE_WRITE of Linux
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


@contextlib.contextmanager
def drafts(incoming: Path, contents: Mapping[str, Content]) -> Iterator[dict[str, Path]]:
    """A synced file for each. Files that the block does not move are deleted."""
    made: dict[str, Path] = {}
    try:
        names = list(contents)
        for start in range(0, len(names), OPEN_AT_ONCE):
            some = names[start : start + OPEN_AT_ONCE]
            made |= {name: incoming / f"{secrets.token_hex(12)}.batch" for name in some}
            _write([(made[name], contents[name]) for name in some])
        yield made
    finally:
        for path in made.values():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def sync_directories(paths: Iterable[Path]) -> None:
    """Names of files are durable after their directories are synced."""
    with contextlib.ExitStack() as opened:
        _sync([_open(opened, path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for path in sorted(set(paths))])


def _write(files: Collection[tuple[Path, Content]]) -> None:
    with contextlib.ExitStack() as opened:
        handles, begin = [], _beginning()
        for path, data in files:
            handles.append(_open(opened, path, _NEW))
            _write_all(handles[-1], data)
        for handle in handles:
            begin(handle, 0, 0, _BEGIN)
        _sync(handles)


@functools.cache
def _beginning() -> Callable[[int, int, int, int], int]:
    """Starts writeback of a file without waiting. Without that call it is only slower."""
    found = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if found is None:
        return lambda *_: 0
    found.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return found  # type: ignore[no-any-return]


def _open(opened: contextlib.ExitStack, path: Path, flags: int) -> int:
    handle = os.open(path, flags, 0o600)
    opened.callback(os.close, handle)
    return handle


def _write_all(handle: int, data: Content) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _sync(handles: Sequence[int]) -> None:
    if len(handles) <= SYNCS // 2:  # not worth the threads
        _sync_each(handles)
        return
    with ThreadPoolExecutor(SYNCS) as pool:
        list(pool.map(_sync_each, (handles[line::SYNCS] for line in range(SYNCS))))


def _sync_each(handles: Iterable[int]) -> None:
    for handle in handles:
        _sync_one(handle)


def _sync_one(handle: int) -> None:
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems sync no directories
            raise
