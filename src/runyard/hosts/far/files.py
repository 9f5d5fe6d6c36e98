"""Small files: written as a whole, read as a whole."""

import errno
import os
import tempfile
from typing import Dict, Iterable, Optional, Tuple


def encode(text: str) -> bytes:
    """Explicit, because the file system encoding of an old Python in the C locale is ASCII."""
    return text.encode("utf-8", "surrogateescape")


def put(root: bytes, files: Iterable[Tuple[bytes, bytes]], directories: Iterable[bytes]) -> None:
    make_directory(root)
    for name in directories:
        make_directory(os.path.join(root, name))
    for name, data in files:
        write(os.path.join(root, name), data)


def make_directory(path: bytes) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        make_directory(os.path.dirname(path))
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            pass


def write(path: bytes, data: bytes, durable: bool = False) -> None:
    """Replace a file: a reader finds the old one or the new one, never a part. `durable`: on disk, too."""
    # A process number alone is not enough: another login node may write to the same directory.
    draft = b"%s.%d.%s.tmp" % (path, os.getpid(), os.urandom(3).hex().encode())
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            _write_all(descriptor, data)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(draft, path)
    except BaseException:
        remove(draft)
        raise


def install(target: bytes, files: Dict[bytes, bytes]) -> None:
    """A directory of files, by a rename, so that nobody ever sees half of it. One that is there is only made whole."""
    if not os.path.isdir(target) and _install_anew(target, files):
        return
    for name, data in files.items():
        if size(os.path.join(target, name)) != len(data):
            write(os.path.join(target, name), data)


def _install_anew(target: bytes, files: Dict[bytes, bytes]) -> bool:
    """False when somebody else was faster."""
    parent = os.path.dirname(target)
    make_directory(parent)
    draft = tempfile.mkdtemp(prefix=b".install-", dir=parent)
    try:
        put(draft, files.items(), ())
        os.rename(draft, target)
        return True
    except OSError as error:
        for name in files:
            remove(os.path.join(draft, name))
        os.rmdir(draft)
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        return False


def fetch(path: bytes) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def size(path: bytes) -> Optional[int]:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def has_entries(directory: bytes) -> bool:
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def remove(path: bytes) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
