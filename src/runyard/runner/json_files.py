"""JSON files that are replaced atomically, with texts that may contain any bytes."""

import errno
import json
import os
import time
from typing import Any, Dict, Sequence, Union

FULL = (errno.ENOSPC, errno.EDQUOT)
_encode = json.JSONEncoder(separators=(",", ":")).encode
_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0

Path = Union[str, bytes]


def to_bytes(text: str) -> bytes:
    """Explicit, because the file system encoding of an old Python in the C locale is ASCII."""
    return text.encode("utf-8", "surrogateescape")


def to_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def read(path: Path) -> Any:
    """The document, or None if it is missing or incomplete."""
    try:
        return json.loads(to_text(read_bytes(path)))
    except (OSError, ValueError):
        return None


def read_bytes(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        parts = [os.read(descriptor, 1 << 16)]
        while parts[-1]:
            parts.append(os.read(descriptor, 1 << 16))
        return b"".join(parts)
    finally:
        os.close(descriptor)


def line(document: Any) -> bytes:
    """One line of ASCII: other characters and stray bytes are escaped by JSON itself."""
    return (_encode(document) + "\n").encode("ascii")


def write(path: Path, document: Dict[str, Any], spare: Sequence[str] = ()) -> None:
    """Replaces the file. On a full disk it writes over the old one: its block is there, and half a file is unknown.
    If there is none, an unused spare one is renamed.

    The document then says so in `disk_full`.
    """
    try:
        _replace(path, line(document))
    except OSError as error:
        if error.errno not in FULL:
            raise
        document["disk_full"] = True
        old = [known for known in (path, *spare) if os.path.exists(known)]
        if not old:
            raise
        _write_over(old[0], line(document))
        os.rename(old[0], path)


def write_patiently(path: str, document: Dict[str, Any], patience_s: float, spare: Sequence[str] = ()) -> bool:
    """As `write`. Tries again while the disk is full or the file system does not answer. False when it gave up.

    Gives up at once if the current directory was deleted: then the record is not needed.
    """
    deadline = time.monotonic() + patience_s
    pause = _PAUSE_S
    while True:
        try:
            write(path, document, spare)
            return True
        except OSError:
            if time.monotonic() > deadline or _is_removed("."):
                return False
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)


def append(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _replace(path: Path, data: bytes) -> None:
    draft = path + b".tmp" if isinstance(path, bytes) else path + ".tmp"
    try:
        _write_file(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, data)
    except OSError:
        _remove(draft)
        raise
    os.rename(draft, path)


def _write_over(path: Path, data: bytes) -> None:
    _write_file(path, os.O_WRONLY, data)
    os.truncate(path, len(data))


def _write_file(path: Path, flags: int, data: bytes) -> None:
    descriptor = os.open(path, flags, 0o666)
    try:
        append(descriptor, data)
    finally:
        os.close(descriptor)  # also an answer: NFS tells here that the disk is full


def _is_removed(directory: str) -> bool:
    try:
        return os.stat(directory).st_nlink == 0
    except OSError as error:
        return error.errno in (errno.ENOENT, errno.ESTALE)


def _remove(path: Path) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
