"""Many small files onto a disk at once.

To make each file safe before the next one is begun lets the file system stop for every one of them: it does not add to
its journal what it is just writing down. So all of them are written, then made safe, and then get their names.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

OPEN_AT_ONCE = 200
SYNCS = 8  # at a time: what waits together is written together
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


@contextlib.contextmanager
def drafts(incoming: Path, contents: Mapping[str, bytes]) -> Iterator[dict[str, Path]]:
    """A file for each, safe on the disk. What the block leaves where it is, is removed."""
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
    """The names of files are safe when their directories are."""
    with contextlib.ExitStack() as opened:
        _sync([_open(opened, path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for path in sorted(set(paths))])


def _write(files: Collection[tuple[Path, bytes]]) -> None:
    with contextlib.ExitStack() as opened:
        handles = []
        for path, data in files:
            handles.append(_open(opened, path, _NEW))
            _write_all(handles[-1], data)
        _sync(handles)


def _open(opened: contextlib.ExitStack, path: Path, flags: int) -> int:
    handle = os.open(path, flags, 0o600)
    opened.callback(os.close, handle)
    return handle


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _sync(handles: Collection[int]) -> None:
    if len(handles) <= SYNCS // 2:  # not worth the threads
        for handle in handles:
            _sync_one(handle)
        return
    with ThreadPoolExecutor(SYNCS) as pool:
        list(pool.map(_sync_one, handles))


def _sync_one(handle: int) -> None:
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems sync no directories
            raise
