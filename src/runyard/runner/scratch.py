"""Scratch space on the node's own disk: a fresh directory for each attempt, removed after it.

    <base>/runyard-<uid>/42.1-1f3c9a2b/       what the run gets as RUNYARD_SCRATCH and TMPDIR
    <base>/runyard-<uid>/42.1-1f3c9a2b.owner  a symbolic link to nowhere, whose text names the runner

Names are short, because programs make sockets there and the address of a socket has 107 bytes. What a dead runner left
is deleted by the next process: see `clear`.
"""

import binascii
import errno
import os
import re
import stat
from typing import Dict, List, NamedTuple, Optional

from . import json_files, kernel, spec, tree

_BASES = (b"/var/tmp", b"/tmp")  # the first is on a disk, also where the second is memory
_OWNER = b".owner"
_spare: List[bytes] = []  # a directory without a run, or none
_VARIABLE = re.compile(rb"\$(?:(\w+)|\{(\w+)\})")


class Owner(NamedTuple):
    """The runner that uses a directory, as far as others can judge whether it lives."""

    node: str  # this and the next are short, because file systems keep links of less than 60 bytes in their inodes
    boot: str
    namespace: str  # process numbers mean something only inside it
    pid: int
    start_time: int

    @classmethod
    def of(cls, process: tree.Process) -> "Owner":
        return cls(_short(kernel.node()), _short(kernel.boot_id()), _namespace(), process.pid, process.start_time)

    @property
    def is_dead(self) -> bool:
        """Proven, by this machine."""
        if self.node != _short(kernel.node()):
            return False
        if self.boot != _short(kernel.boot_id()):
            return True
        return self.namespace == _namespace() and not tree.is_alive(self.pid, self.start_time)


def prepare(wanted: spec.Spec, runner: tree.Process, tidies: bool = False) -> bytes:
    """Made, and named in the run's environment. `tidies`: where others left something when they died, it is removed
    first. Raises BadSpec where the site names a place that cannot be used, and OSError where not even the attempt's own
    directory can hold it."""
    path = _make(wanted, runner)
    if tidies:
        clear(os.path.dirname(os.path.dirname(path)))
    wanted.env[b"RUNYARD_SCRATCH"] = path
    if not wanted.keeps_tmpdir:
        wanted.env[b"TMPDIR"] = path
    for name in wanted.scratch_names:
        wanted.env.setdefault(name, path)
    return path


def _make(wanted: spec.Spec, runner: tree.Process) -> bytes:
    name = json_files.to_bytes("%s-%s" % (wanted.key, _short(wanted.tag)))
    if wanted.scratch:
        place = expanded(wanted.scratch, wanted.env)
        try:
            return _make_in(place, name, runner)
        except OSError as error:
            message = "no scratch directory can be made in %s: %s" % (_shown(place), error.strerror)
            raise spec.BadSpec(message) from error
    for place in bases(wanted.env, wanted.keeps_tmpdir):
        try:
            return _make_in(place, name, runner)
        except OSError:
            continue
    os.mkdir("scratch", 0o700)
    return os.path.join(os.getcwdb(), b"scratch")


def bases(env: Dict[bytes, bytes], keeps_tmpdir: bool = False) -> List[bytes]:
    """Where to look for room, best first. A scheduler may have made a directory for the job."""
    names = (b"SLURM_TMPDIR",) if keeps_tmpdir else (b"SLURM_TMPDIR", b"TMPDIR")
    named = [env[name] for name in names if env.get(name, b"").startswith(b"/")]
    return named + [base for base in _BASES if base not in named]


def remove(path: bytes) -> bool:
    """Whatever the run left in it, or in its place. False when something is there that cannot be removed."""
    try:
        os.rmdir(path)  # most runs leave nothing
    except FileNotFoundError:
        pass
    except OSError:
        if not _is_removed(path):
            return False
    try:
        os.unlink(path + _OWNER)
    except OSError:  # the attempt's own directory has none
        pass
    return True


def leave(path: bytes) -> None:
    """For a process that takes another run soon: an empty directory is kept for that one, where it is as good as new.
    To make one costs most of what a scratch directory costs."""
    if not _spare and _is_as_new(path):
        _spare.append(path)
    else:
        remove(path)


def let_go() -> None:
    while _spare:
        remove(_spare.pop())


def clear(base: bytes) -> None:
    """All that dead runners left there."""
    root = os.path.join(base, _root_name())
    try:
        names = os.listdir(root)
    except OSError:
        return
    for name in names:
        if name.endswith(_OWNER):
            remove_after_death(os.path.join(root, name[: -len(_OWNER)]))


def remove_after_death(path: bytes) -> None:
    """Only what is marked as ours, and only when its runner is proven to be gone."""
    owner = owner_of(path) if path else None
    if owner is not None and owner.is_dead:
        remove(path)


def owner_of(path: bytes) -> Optional[Owner]:
    try:
        node, boot, namespace, pid, start_time = json_files.to_text(os.readlink(path + _OWNER)).split(" ")
        return Owner(node, boot, namespace, int(pid), int(start_time))
    except (OSError, ValueError):
        return None


def _make_in(base: bytes, name: bytes, runner: tree.Process) -> bytes:
    root = os.path.join(base, _root_name())
    _ensure_private(root)
    path = os.path.join(root, name)
    if _spare and _moved_to(path):
        return path
    # The owner first: a directory without one would stay for ever.
    os.symlink(json_files.to_bytes(" ".join(map(str, Owner.of(runner)))), path + _OWNER)
    try:
        os.mkdir(path, 0o700)
    except OSError:
        os.unlink(path + _OWNER)
        raise
    return path


def _is_as_new(path: bytes) -> bool:
    try:
        return os.lstat(path).st_mode == stat.S_IFDIR | 0o700 and not os.listdir(path) and owner_of(path) is not None
    except OSError:
        return False


def _moved_to(path: bytes) -> bool:
    spare = _spare.pop()
    if os.path.dirname(spare) == os.path.dirname(path) and _is_as_new(spare):
        try:
            os.rename(spare + _OWNER, path + _OWNER)
            os.rename(spare, path)
            return True
        except OSError:
            pass
    remove(spare)
    return False


def _ensure_private(root: bytes) -> None:
    """Ours alone: others may write to the directory above it."""
    try:
        os.mkdir(root, 0o700)
        return
    except FileExistsError:
        facts = os.lstat(root)
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
        raise PermissionError(errno.EPERM, "%s belongs to another user" % _shown(root))
    if facts.st_mode & 0o077:
        os.chmod(root, 0o700)


def _root_name() -> bytes:
    return b"runyard-%d" % os.getuid()


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return "-"


def _short(text: str) -> str:
    return "%08x" % (binascii.crc32(json_files.to_bytes(text)) & 0xFFFFFFFF)


def expanded(place: bytes, env: Dict[bytes, bytes]) -> bytes:
    def value(match: "re.Match[bytes]") -> bytes:
        name = match.group(1) or match.group(2)
        if name not in env:
            raise spec.BadSpec("the scratch directory %s names a variable that is not set here" % _shown(place))
        return env[name]

    found = _VARIABLE.sub(value, place)
    if not found.startswith(b"/"):  # such as a variable that is set to nothing
        raise spec.BadSpec("the scratch directory %s is no absolute path here" % _shown(place))
    return found


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "replace")


def _is_removed(path: bytes) -> bool:
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            return _remove_tree(path)
        os.unlink(path)
        return True
    except OSError:  # another user's, or deleted by another process meanwhile
        return False


def _remove_tree(path: bytes) -> bool:
    """Links are not followed, other file systems are left alone, and no depth is too great: every directory is moved up
    to the first level before it is emptied."""
    top = _open(path)
    try:
        device, todo, is_whole = os.fstat(top).st_dev, [b"."], True
        for number, name in enumerate(todo):
            is_empty = _empty(name, top, device, todo)
            is_whole = is_whole and is_empty
            if number and is_empty:
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    if is_whole:
        os.rmdir(path)
    return is_whole


def _empty(name: bytes, top: int, device: int, todo: List[bytes]) -> bool:
    folder, is_whole = _open(name, top), True
    try:
        for entry in os.listdir(folder):
            try:
                _take_out(os.fsencode(entry), folder, top, device, todo)
            except OSError:  # a mount point, or another user's
                is_whole = False
    finally:
        os.close(folder)
    return is_whole


def _take_out(name: bytes, folder: int, top: int, device: int, todo: List[bytes]) -> None:
    facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISDIR(facts.st_mode):
        os.unlink(name, dir_fd=folder)
        return
    if facts.st_dev != device:
        raise OSError("another file system is mounted there")
    if facts.st_mode & 0o700 != 0o700:
        os.chmod(name, 0o700, dir_fd=folder)
    moved = b".%s" % os.urandom(8).hex().encode()
    os.rename(name, moved, src_dir_fd=folder, dst_dir_fd=top)  # refused for a mount point
    todo.append(moved)


def _open(name: bytes, folder: Optional[int] = None) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=folder)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=folder)
        descriptor = os.open(name, flags, dir_fd=folder)
    if os.fstat(descriptor).st_mode & 0o700 != 0o700:
        os.fchmod(descriptor, 0o700)
    return descriptor
