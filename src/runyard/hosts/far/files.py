"""Small files: written as a whole, read as a whole."""

import errno
import os
import tempfile
import time
from typing import Callable, Dict, Iterable, Optional, Tuple

COPIED_AT_ONCE = 16 << 20


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
    """A directory of files, by a rename, so that it is never seen incomplete. An existing one is only completed."""
    if not os.path.isdir(target) and _install_anew(target, files):
        return
    for name, data in files.items():
        if size(os.path.join(target, name)) != len(data):
            make_directory(os.path.dirname(os.path.join(target, name)))
            write(os.path.join(target, name), data)


def _install_anew(target: bytes, files: Dict[bytes, bytes]) -> bool:
    """False if another process was faster."""
    parent = os.path.dirname(target)
    make_directory(parent)
    draft = tempfile.mkdtemp(prefix=b".install-", dir=parent)
    try:
        put(draft, files.items(), sorted({os.path.dirname(name) for name in files} - {b""}))
        os.rename(draft, target)
        return True
    except OSError as error:
        remove_tree(draft)
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        return False


def copy(source: bytes, target: bytes, length: int, mode: int, beat: Callable[[], None]) -> None:
    """A separate file with the same bytes; file systems that support it share the blocks until one of the two
    changes."""
    with open(source, "rb") as incoming:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb", 0) as outgoing:
            done = _copy_inside(incoming.fileno(), descriptor, length, beat)
            if done < length:
                incoming.seek(done)
                outgoing.seek(done)
                for piece in iter(lambda: incoming.read(COPIED_AT_ONCE), b""):
                    _write_all(descriptor, piece)
                    beat()
            os.fchmod(descriptor, mode)


def _copy_inside(source: int, target: int, length: int, beat: Callable[[], None]) -> int:
    """By the kernel, as far as it supports that here; returns the number of copied bytes."""
    inside, done = getattr(os, "copy_file_range", None), 0
    while inside is not None and done < length:
        try:
            count = inside(source, target, min(length - done, COPIED_AT_ONCE), done, done)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
                raise
            return done
        if not count:
            return done
        done += count
        beat()
    return done


def remove_tree(path: bytes) -> None:
    """Delete whatever exists at the path. Links are not followed, and no depth is too great: every directory is moved
    up to the first level before it is emptied."""
    if _unlinked(path):
        return
    todo = [path]
    for directory in todo:
        os.chmod(directory, 0o700)
        for name in os.listdir(directory):
            entry = os.path.join(directory, name)
            if not _unlinked(entry):
                os.chmod(entry, 0o700)  # one that must not be written to cannot be moved
                todo.append(os.path.join(path, b".%s.gone" % os.urandom(8).hex().encode()))
                os.rename(entry, todo[-1])
    for directory in reversed(todo):
        os.rmdir(directory)


def _unlinked(path: bytes) -> bool:
    """False: it is a directory."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError:
        if os.path.islink(path) or not os.path.isdir(path):
            raise
        return False
    return True


def fetch(path: bytes) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def size(path: bytes) -> Optional[int]:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def age(path: bytes, missing: float = 0.0) -> float:
    """Seconds since it was last written to; `missing` if there is no such file."""
    try:
        return time.time() - os.lstat(path).st_mtime
    except OSError:
        return missing


def room(path: bytes) -> Tuple[int, int]:
    """Free and total bytes of the disk that the path is on, or will be. None are free if no more files can be
    created."""
    while True:
        try:
            disk = os.statvfs(path)
            break
        except (FileNotFoundError, NotADirectoryError):
            path = os.path.dirname(path) or b"/"
    full = disk.f_files > 0 and disk.f_favail == 0
    return 0 if full else disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize


def has_entries(directory: bytes) -> bool:
    """True also if it cannot be listed, because an empty directory may be deleted."""
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is not None
    except OSError as error:
        return error.errno not in (errno.ENOENT, errno.ENOTDIR)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def remove(path: bytes) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
