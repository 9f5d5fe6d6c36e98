"""Files that come from elsewhere: written piece by piece, checked, and seen only when they are whole."""

import errno
import hashlib
import os
from typing import Iterable, Iterator, List

from . import files

CHUNK = 1 << 20
READ_ONLY = 0o400


def receive(targets: List[bytes], digest: str, pieces: Iterable[bytes]) -> None:
    """The same bytes at all targets, as one file with several names where that is possible."""
    first = targets[0]
    _write(first, digest, pieces)
    for other in targets[1:]:
        _make_room(other)
        try:
            os.link(first, other)
        except OSError:  # not every file system has such names, or so many of them
            _write(other, digest, _read(first))


def _write(path: bytes, digest: str, pieces: Iterable[bytes]) -> None:
    _make_room(path)
    draft = os.path.join(os.path.dirname(path), b".%s.tmp" % os.urandom(8).hex().encode())
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            found = hashlib.sha256()
            for piece in pieces:
                found.update(piece)
                file.write(piece)
            os.fchmod(file.fileno(), READ_ONLY)
        if "sha256:" + found.hexdigest() != digest:
            raise OSError(errno.EBADMSG, "the bytes are not those of " + digest, path)
        os.rename(draft, path)
    except BaseException:
        files.remove(draft)
        raise


def _make_room(path: bytes) -> None:
    files.make_directory(os.path.dirname(path))
    files.remove(path)


def _read(path: bytes) -> Iterator[bytes]:
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(CHUNK), b""):
            yield piece
