"""What runs bring along is there before they are accepted, whole: nothing waits for a file that nobody has sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from runyard import errors
from runyard.blobs.base import Blobs
from runyard.model.python_env import PythonEnv
from runyard.model.spec import RunSpec
from runyard.model.staged import Code
from runyard.model.tree import Tree
from runyard.yard.submit import numbered

LARGEST_TREE = 256 << 20  # bytes of its description
REMEMBERED = 10_000
SEND_FIRST = "send its files first, then the tree: POST /api/v1/blobs/pack"


class Extent(NamedTuple):
    files: int
    size: int


class Brought:
    """Blobs are never taken away, so a tree that was once found whole stays whole."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._whole: dict[str, Extent] = {}
        self._there: set[str] = set()  # files that are no trees

    def check(self, specs: Sequence[RunSpec]) -> None:
        for index, spec in enumerate(specs):
            with numbered(index if len(specs) > 1 else None):
                if spec.code is not None:
                    self._check_code(spec.code)
                for item in spec.data:
                    if item.tree is not None:
                        self._extent(item.tree, f"data: {item.to}")
                self._check_python(spec.python_env)

    def _check_code(self, code: Code) -> None:
        found = self._extent(code.tree, "code")
        if found != (code.files, code.size):
            raise errors.InvalidInput(f"code: the tree has {found.files} files of {found.size} bytes", "say so")
        diff = code.git.diff if code.git else None
        if diff is not None and not self._blobs.has(diff):
            raise errors.InvalidInput(f"code.git.diff: the yard has no file {diff}", "send it first")

    def _check_python(self, python: PythonEnv) -> None:
        wanted = python.digests() - self._there
        missing = self._blobs.missing(wanted) if wanted else ()
        if missing:
            raise errors.InvalidInput(f"python_env: the yard has no file {min(missing)}", "send it first")
        if len(self._there) >= REMEMBERED:
            self._there.clear()
        self._there |= wanted

    def _extent(self, digest: str, where: str) -> Extent:
        if digest not in self._whole:
            tree = self._read(digest, where)
            self._check_files(tree, where)
            if len(self._whole) >= REMEMBERED:
                self._whole.clear()
            self._whole[digest] = Extent(len(tree.files), tree.size)
        return self._whole[digest]

    def _read(self, digest: str, where: str) -> Tree:
        try:
            size = self._blobs.size(digest)
        except errors.NotFound:
            raise errors.InvalidInput(f"{where}: the yard has no tree {digest}", SEND_FIRST) from None
        if size > LARGEST_TREE:
            raise errors.InvalidInput(f"{where}: {digest} is too large for a tree", "split it into several folders")
        try:
            return Tree.parse(self._blobs.read(digest, 0, size))
        except errors.InvalidInput as error:
            raise errors.InvalidInput(f"{where}: {digest} is no tree: {error.message}", error.fix) from None

    def _check_files(self, tree: Tree, where: str) -> None:
        missing = self._blobs.missing(tree.digests())
        if missing:
            named = next(file.path for file in tree.files if file.digest in missing)
            raise errors.InvalidInput(
                f"{where}: the yard lacks {len(missing)} of the tree's files, such as {named!r}", SEND_FIRST
            )
