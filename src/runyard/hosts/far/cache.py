"""The cache of a site. All entries can be fetched again from the yard, so unused ones may be deleted.

    blobs/ab/cdef…            a file by its digest
    trees/<digest>            a folder of data, which many attempts share
    parts/<digest>.<owner>    a partial file; an interrupted transfer continues there
    pins/<run>-a<N>.json      the entries that an attempt needs
    lock                      held shared while pins are made, exclusively while something is deleted

Several agents may use one cache. An entry appears by a rename, complete and checked. An unmodified entry has a
modification time in the year 2000: any other was written to, and its digest is checked before it is used.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import stat
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional

from . import files, trees

CHUNK = 1 << 20
SEALED_NS = 946684800 * 10**9
READ_ONLY = 0o400
FULL = (errno.ENOSPC, errno.EDQUOT)
LOCK_PAUSE_S = 0.05

Json = Dict[str, Any]
Beat = Callable[[], None]

_DIGEST = re.compile("sha256:[0-9a-f]{64}")


class CacheFiles:
    def __init__(self, root: bytes, agent: str, lane: int = 0) -> None:
        self.root, self.agent, self._lane = root, agent, lane

    def blob(self, digest: str) -> bytes:
        name = _name(digest)
        return os.path.join(self.root, b"blobs", name[:2], name[2:])

    def tree(self, digest: str) -> bytes:
        return os.path.join(self.root, b"trees", _name(digest))

    def part(self, digest: str) -> bytes:
        """For one transfer only: two writers to one file would both have to start again."""
        owner = hashlib.sha256(files.encode("%d %s" % (self._lane, self.agent))).hexdigest()[:16].encode()
        return os.path.join(self.root, b"parts", _name(digest) + b"." + owner)

    def pin(self, name: str) -> bytes:
        return os.path.join(self.root, b"pins", trees.safe(name).replace(b"/", b"-") + b".json")

    # --- files --------------------------------------------------------------------------------------------------

    def has(self, digest: str, size: Optional[int], beat: Beat) -> bool:
        """Whether it exists and is correct. A wrong one is deleted."""
        path = self.blob(digest)
        try:
            found = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        fits = stat.S_ISREG(found.st_mode) and size in (None, found.st_size)
        if fits and (found.st_mtime_ns == SEALED_NS or digest_of(path, beat) == digest):
            _seal(path)
            return True
        files.remove_tree(path)
        return False

    def receive(self, digest: str, offset: int, pieces: Iterable[bytes], beat: Beat) -> None:
        """Continue its partial file at this offset. If the pieces end early, the received bytes are kept for the next
        time."""
        part = self.part(digest)
        try:
            found = self._append(part, offset, pieces, beat)
        except OSError as error:
            if error.errno in FULL:  # a partial file that cannot be continued is in the way
                files.remove(part)
            raise
        if found != digest:
            files.remove(part)
            raise OSError(errno.EBADMSG, "the bytes are not those of " + digest, part)
        self._keep(part, self.blob(digest))

    def held(self, digest: str) -> int:
        """Size of the partial download of this digest."""
        return files.size(self.part(digest)) or 0

    def _append(self, part: bytes, offset: int, pieces: Iterable[bytes], beat: Beat) -> str:
        files.make_directory(os.path.dirname(part))
        total = hashlib.sha256()
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            for piece in iter(lambda: file.read(min(CHUNK, offset - file.tell())), b""):
                total.update(piece)
                beat()
            file.truncate(file.tell())
            for piece in pieces:
                total.update(piece)
                file.write(piece)
                beat()
        return "sha256:" + total.hexdigest()

    def _keep(self, part: bytes, target: bytes) -> None:
        """The time is set last: a partial file that old would be taken for an abandoned one."""
        os.chmod(part, READ_ONLY)
        files.make_directory(os.path.dirname(target))
        os.rename(part, target)
        _seal(target)

    # --- folders ------------------------------------------------------------------------------------------------

    def describe(self, digest: str) -> trees.Tree:
        return trees.parse(files.fetch(self.blob(digest)))

    def copy(self, entry: trees.TreeFile, target: bytes, beat: Beat, writable: bool = True) -> None:
        mode = (0o700 if entry.executable else 0o600) if writable else (0o500 if entry.executable else READ_ONLY)
        files.copy(self.blob(entry.digest), target, entry.size, mode, beat)
        if not writable:
            _seal(target)

    def link(self, entry: trees.TreeFile, target: bytes, beat: Beat) -> None:
        """The same file under another name if possible: all names of a file have one mode."""
        if not entry.executable:
            try:
                os.link(self.blob(entry.digest), target)
                return
            except OSError as error:  # not every file system has such names, or so many of them
                if error.errno in (errno.ENOENT, errno.EEXIST):
                    raise
        self.copy(entry, target, beat, writable=False)

    def is_whole(self, digest: str, tree: trees.Tree, beat: Beat) -> bool:
        """Whether the folder exists with all its files unmodified."""
        root = self.tree(digest)
        try:
            for entry in tree.files:
                beat()
                found = os.lstat(os.path.join(root, entry.path))
                if not stat.S_ISREG(found.st_mode) or (found.st_size, found.st_mtime_ns) != (entry.size, SEALED_NS):
                    return False
            return os.path.isdir(root) and all(
                os.readlink(os.path.join(root, link.path)) == link.target for link in tree.links
            )
        except OSError:
            return False

    def share(self, digest: str, tree: trees.Tree, beat: Beat) -> None:
        """Make the folder for all to read."""
        target = self.tree(digest)
        draft = _aside(target)
        files.make_directory(draft)
        try:
            trees.make(tree, draft, lambda entry, path: self.link(entry, path, beat), beat)
            trees.protect(tree, draft)
            if not _renamed(draft, target) and not self.is_whole(digest, tree, beat):  # a damaged one is in the way
                files.remove_tree(put_away(target))
                os.rename(draft, target)
        finally:
            files.remove_tree(draft)

    # --- pins ---------------------------------------------------------------------------------------------------

    def pin_down(self, pins: Dict[str, Json], beat: Beat) -> None:
        """From now on, no entry that they name is deleted."""
        files.make_directory(os.path.join(self.root, b"pins"))
        with self.locked(fcntl.LOCK_SH, beat):
            for name, pin in pins.items():
                files.write(self.pin(name), json.dumps(pin).encode())

    @contextlib.contextmanager
    def locked(self, kind: int, beat: Beat) -> Iterator[None]:
        """A file system without locks is used without them: in the worst case a file is fetched twice."""
        descriptor = os.open(os.path.join(self.root, b"lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while not _lock(descriptor, kind):
                beat()
                time.sleep(LOCK_PAUSE_S)
            yield
        finally:
            os.close(descriptor)


def put_away(path: bytes) -> bytes:
    """Renamed out of the way at once, however long the deletion takes."""
    aside = _aside(path)
    os.rename(path, aside)
    return aside


def digest_of(path: bytes, beat: Beat) -> str:
    total = hashlib.sha256()
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(CHUNK), b""):
            total.update(piece)
            beat()
    return "sha256:" + total.hexdigest()


def read_pin(path: bytes) -> Optional[Json]:
    try:
        pin = json.loads(files.fetch(path).decode())
    except (OSError, ValueError):
        return None
    return pin if isinstance(pin, dict) else None


def names(directory: bytes) -> List[bytes]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _aside(path: bytes) -> bytes:
    """In the same directory, because one that must not be written to cannot be moved to another."""
    return path + b".%s.tmp" % os.urandom(6).hex().encode()


def _renamed(draft: bytes, target: bytes) -> bool:
    """False if something exists there already."""
    try:
        os.rename(draft, target)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise
        return False
    return True


def _seal(path: bytes) -> None:
    """Record that it is used now, and that it is correct."""
    os.utime(path, ns=(int(time.time() * 1e9), SEALED_NS))


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True


def _name(digest: str) -> bytes:
    """Checked before it becomes a path."""
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise OSError(errno.EINVAL, "%r is not a digest" % (digest,))
    return digest[len("sha256:") :].encode()
