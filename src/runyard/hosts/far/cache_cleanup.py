"""Limit the size of a cache: delete the least recently used entries first, and never those that an attempt needs."""

import collections
import contextlib
import fcntl
import os
import re
from typing import Any, Dict, Iterator, List, Optional, Set

from . import attempt_cleanup, files, trees
from .cache import Beat, CacheFiles, names, put_away, read_pin

LEFT_BEHIND_S = 86400.0  # what a killed program left half made is removed after so long
GOES = (b"code", b"data", b"inputs")  # of an attempt that is over: what was staged for it, and nothing that it wrote

_PIN = re.compile(rb"(\d+)-a(\d+)\.json")


def tidy(cache: CacheFiles, runs: bytes, at: List[int], living: Optional[List[str]], limit: int, beat: Beat) -> int:
    """Returns the remaining bytes. `living`: all attempts that this agent has at that moment; its other attempts have
    ended. None: unknown."""
    if not os.path.isdir(cache.root):
        return 0
    if living is not None:
        _release(cache, runs, at, set(living), beat)
    _sweep(cache)
    shelf = _Shelf(cache, beat)
    if shelf.size > limit:
        _evict(cache, shelf, limit, beat)
    return shelf.size


def _release(cache: CacheFiles, runs: bytes, at: List[int], living: Set[str], beat: Beat) -> None:
    """A pin that was made later is ignored: the request may be late."""
    for name in names(os.path.join(cache.root, b"pins")):
        found = _PIN.fullmatch(name)
        if found is None or name[: -len(b".json")].decode() in living:
            continue
        path = os.path.join(cache.root, b"pins", name)
        pin = read_pin(path)
        if pin is not None and pin.get("agent") == cache.agent and pin.get("at", at) <= at:
            if attempt_cleanup.is_kept(cache, name[: -len(b".json")].decode()):  # `keep` says that all of it is kept
                files.remove(path)
            else:
                _forget(os.path.join(runs, found.group(1), b"a" + found.group(2)), path, beat)


def _forget(home: bytes, pin: bytes, beat: Beat) -> None:
    """The pin is deleted last: as long as it exists, this is repeated."""
    try:
        for name in GOES:
            beat()
            files.remove_tree(os.path.join(home, name))
    except OSError:  # something is still written there
        return
    files.remove(pin)


class _Entry:
    def __init__(self, path: bytes, digest: str, used: float, sizes: Dict[int, int], is_tree: bool) -> None:
        self.path, self.digest, self.used, self.sizes, self.is_tree = path, digest, used, sizes, is_tree


class _Shelf:
    """All entries, in the order of deletion. A file with several names in the cache counts once."""

    def __init__(self, cache: CacheFiles, beat: Beat) -> None:
        folders = list(_folders(cache, beat))
        blobs = list(_blobs(cache, beat))
        used: Dict[int, float] = {}
        for entry in folders:
            for inode in entry.sizes:
                used[inode] = max(entry.used, used.get(inode, 0.0))
        for entry in blobs:  # to remove one of two names frees nothing, so they are as old as each other
            entry.used = max([entry.used] + [used.get(inode, 0.0) for inode in entry.sizes])
        self.entries = sorted(folders + blobs, key=lambda entry: (entry.used, not entry.is_tree))
        self._names = collections.Counter(inode for entry in self.entries for inode in entry.sizes)
        sizes: Dict[int, int] = {}
        for entry in self.entries:
            sizes.update(entry.sizes)
        self.size = sum(sizes.values())

    def is_held(self, entry: _Entry) -> bool:
        """Used by a folder that is kept."""
        return not entry.is_tree and any(self._names[inode] > 1 for inode in entry.sizes)

    def take_out(self, entry: _Entry) -> None:
        for inode, size in entry.sizes.items():
            self._names[inode] -= 1
            if not self._names[inode]:
                self.size -= size


def _evict(cache: CacheFiles, shelf: _Shelf, limit: int, beat: Beat) -> None:
    aside = []
    with cache.locked(fcntl.LOCK_EX, beat):
        pinned, shared = _pinned(cache, beat)
        for entry in shelf.entries:
            if shelf.size <= limit:
                break
            if entry.digest in (shared if entry.is_tree else pinned) or shelf.is_held(entry):
                continue
            shelf.take_out(entry)
            if not entry.is_tree:
                files.remove(entry.path)
            else:
                with contextlib.suppress(FileNotFoundError):  # another agent was quicker, since the shelf was looked at
                    aside.append(put_away(entry.path))
    for path in aside:
        files.remove_tree(path)


def _pinned(cache: CacheFiles, beat: Beat) -> Any:
    """Digests of files, and of folders."""
    blobs: Set[str] = set()
    shared: Set[str] = set()
    sources: Set[str] = set()
    for name in names(os.path.join(cache.root, b"pins")):
        beat()
        pin = read_pin(os.path.join(cache.root, b"pins", name)) or {}
        blobs.update(pin.get("blobs", ()))
        shared.update(pin.get("trees", ()))
        sources.update(pin.get("from", ()))
    for digest in sources:
        blobs.update(_contents(cache, digest))
    return blobs | shared | sources, shared


def _contents(cache: CacheFiles, digest: str) -> List[str]:
    try:
        return list(trees.digests(cache.describe(digest)))
    except OSError:  # then nothing of it was fetched yet
        return []


def _folders(cache: CacheFiles, beat: Beat) -> Iterator[_Entry]:
    for name in names(os.path.join(cache.root, b"trees")):
        if name.endswith(b".tmp"):
            continue
        path = os.path.join(cache.root, b"trees", name)
        sizes: Dict[int, int] = {}
        try:
            used = os.lstat(path).st_mtime
            for directory, _, inside in os.walk(path):
                beat()
                for file in inside:
                    found = os.lstat(os.path.join(directory, file))
                    sizes[found.st_ino] = found.st_size
        except OSError:  # it was removed meanwhile
            continue
        yield _Entry(path, "sha256:" + name.decode(errors="replace"), used, sizes, True)


def _blobs(cache: CacheFiles, beat: Beat) -> Iterator[_Entry]:
    root = os.path.join(cache.root, b"blobs")
    for start in names(root):
        beat()
        for rest in names(os.path.join(root, start)):
            path = os.path.join(root, start, rest)
            try:
                found = os.lstat(path)
            except OSError:
                continue
            digest = "sha256:" + (start + rest).decode(errors="replace")
            yield _Entry(path, digest, found.st_atime, {found.st_ino: found.st_size}, False)


def _sweep(cache: CacheFiles) -> None:
    """Leftovers of interruptions: drafts, abandoned partial files, unreadable pins."""
    for directory in (b"trees", b"parts", b"pins"):
        for name in names(os.path.join(cache.root, directory)):
            path = os.path.join(cache.root, directory, name)
            half = directory == b"parts" or name.endswith(b".tmp") or (directory == b"pins" and read_pin(path) is None)
            if half and files.age(path) > LEFT_BEHIND_S:
                files.remove_tree(path)
