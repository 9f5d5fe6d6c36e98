"""Folders that are described by one file, see runyard.model.tree: read, checked once more, and made."""

import errno
import json
import os
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Set

from . import files

Beat = Callable[[], None]  # called while work goes on that may take long

TreeFile = NamedTuple("TreeFile", [("path", bytes), ("digest", str), ("size", int), ("executable", bool)])
TreeLink = NamedTuple("TreeLink", [("path", bytes), ("target", bytes)])
Tree = NamedTuple("Tree", [("files", List[TreeFile]), ("links", List[TreeLink])])

Place = Callable[[TreeFile, bytes], None]  # makes a file of a tree at that path


def parse(data: bytes) -> Tree:
    """Validated: no path is outside the directory."""
    try:
        tree = _read(json.loads(data.decode("utf-8")))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _wrong("it cannot be read") from None
    _check_apart([entry.path for entry in tree.files] + [entry.path for entry in tree.links])
    return tree


def safe(path: str) -> bytes:
    """A relative path as bytes; raises OSError if it leads outside the folder."""
    encoded = files.encode(path)
    if b"\0" in encoded or any(part in (b"", b".", b"..") for part in encoded.split(b"/")):
        raise _wrong("the path %r leads out" % path)
    return encoded


def make(tree: Tree, target: bytes, place: Place, beat: Beat) -> None:
    """In an existing, empty directory. Links are made last, so that nothing is written through one."""
    for directory in _directories(tree):
        os.mkdir(os.path.join(target, directory), 0o700)
    for entry in tree.files:
        beat()
        place(entry, os.path.join(target, entry.path))
    for link in tree.links:
        os.symlink(link.target, os.path.join(target, link.path))


def protect(tree: Tree, target: bytes) -> None:
    """Make all its directories read-only, the deepest first."""
    for directory in sorted(_directories(tree), reverse=True):
        os.chmod(os.path.join(target, directory), 0o500)
    os.chmod(target, 0o500)


def digests(tree: Tree) -> Dict[str, int]:
    return {entry.digest: entry.size for entry in tree.files}


def _read(given: Dict[str, Any]) -> Tree:
    return Tree(
        [TreeFile(safe(path), digest, int(size), bool(mode)) for path, digest, size, mode in given["files"]],
        [TreeLink(safe(path), _inside(path, target)) for path, target in given["links"]],
    )


def _inside(path: str, target: str) -> bytes:
    """'..' is allowed only at the beginning: after a name that is itself a link it could lead anywhere."""
    parts = target.split("/")
    up = next((index for index, part in enumerate(parts) if part != ".."), len(parts))
    if not target or target.startswith("/") or "\0" in target or ".." in parts[up:] or up > path.count("/"):
        raise _wrong("the link %r leads out" % path)
    return files.encode(target)


def _check_apart(paths: List[bytes]) -> None:
    taken = set(paths)
    if len(taken) < len(paths) or any(above in taken for path in taken for above in _above(path)):
        raise _wrong("two of its entries are at one place")


def _directories(tree: Tree) -> List[bytes]:
    """Each after its parent."""
    found: Set[bytes] = set()
    for entry in tree.files:
        found.update(_above(entry.path))
    for link in tree.links:
        found.update(_above(link.path))
    return sorted(found)


def _above(path: bytes) -> Iterator[bytes]:
    end = path.find(b"/")
    while end >= 0:
        yield path[:end]
        end = path.find(b"/", end + 1)


def _wrong(what: str) -> OSError:
    return OSError(errno.EINVAL, "this is not the description of a folder: " + what)
