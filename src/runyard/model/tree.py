"""A directory as one blob: the paths of its files with the digests of their contents.

Equal directories give equal bytes: canonical JSON, sorted by path, without spaces. A tree is therefore identified by
the digest of that JSON, like any other file.

    {"files":[["src/train.py","sha256:…",1204,0],["run.sh","sha256:…",88,1]],"links":[["latest","src/train.py"]]}

Empty directories are not kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from runyard import errors
from runyard.model import fields, json_text, paths
from runyard.model.digest import check_digest

MOST = 1_000_000  # files and links of one tree
LARGEST = 1 << 50  # bytes of one file


class TreeFile(NamedTuple):
    path: str  # relative to the directory
    digest: str
    size: int
    executable: bool


class TreeLink(NamedTuple):
    path: str
    target: str  # relative to the link's own directory, and inside the tree


@dataclass(frozen=True)
class Tree:
    """Build it with `build` or `parse`, which validate untrusted input."""

    files: tuple[TreeFile, ...]
    links: tuple[TreeLink, ...] = ()

    @classmethod
    def build(cls, files: Iterable[TreeFile], links: Iterable[TreeLink] = ()) -> Tree:
        """In any order; raises InvalidInput."""
        tree = cls(
            files=tuple(sorted(_file(file) for file in files)), links=tuple(sorted(_link(link) for link in links))
        )
        named = [*(file.path for file in tree.files), *(link.path for link in tree.links)]
        fields.at_most(len(named), "tree", MOST)
        paths.check_apart(named, "tree")
        return tree

    @classmethod
    def parse(cls, data: bytes) -> Tree:
        """Raises InvalidInput, also for a tree that is not in the canonical form of `encode`."""
        given = fields.mapping(json_text.parse_object(data), "tree", ("files", "links"))
        tree = cls.build(
            (TreeFile(*row) for row in _rows(given, "files", 4)), (TreeLink(*row) for row in _rows(given, "links", 2))
        )
        if tree.encode() != data:
            raise errors.InvalidInput("tree: it is not in canonical form", "sort by path, and use no spaces")
        return tree

    def encode(self) -> bytes:
        rows = {
            "files": [[file.path, file.digest, file.size, int(file.executable)] for file in self.files],
            "links": [list(link) for link in self.links],
        }
        return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()

    @cached_property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(self.encode()).hexdigest()}"

    @cached_property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.size for file in self.files)

    def digests(self) -> dict[str, int]:
        """The digests of its files, each once, with the size."""
        return {file.digest: file.size for file in self.files}


def _rows(given: dict[str, Any], name: str, length: int) -> Iterable[list[Any]]:
    rows = given.get(name)
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == length for row in rows):
        raise errors.InvalidInput(f"tree.{name}: must be a list of lists of {length}")
    return rows


def _file(file: TreeFile) -> TreeFile:
    path = paths.relative(file.path, "tree.files")
    size = fields.integer(file.size, f"tree.files: size of {path!r}", 0, LARGEST)
    if file.executable not in (0, 1):
        raise errors.InvalidInput(f"tree.files: {path!r} is executable or not: 1 or 0")
    return TreeFile(path, check_digest(file.digest, "tree.files"), size, bool(file.executable))


def _link(link: TreeLink) -> TreeLink:
    path = paths.relative(link.path, "tree.links")
    return TreeLink(path, paths.link_target(link.target, path, "tree.links"))
