"""Code, data and inputs are complete in the yard before a run is accepted: no run waits for a file that was not
sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from runyard import errors
from runyard.model.digest import FOUND_S
from runyard.model.python_env import PythonEnv
from runyard.model.spec import RunSpec
from runyard.model.staged import Code
from runyard.model.tree import Tree
from runyard.yard.blobs import YardBlobs
from runyard.yard.runs.submit import numbered

LARGEST_TREE = 256 << 20  # bytes of its description
REMEMBERED = 10_000
SEND_FIRST = "send its files first, then the tree: POST /api/v1/blobs/pack"


T = TypeVar("T")


class Extent(NamedTuple):
    files: int
    size: int


class _Found(Generic[T]):
    """Cached knowledge about files that existed a while ago."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._known: dict[str, tuple[float, T]] = {}

    def get(self, digest: str) -> T | None:
        until, value = self._known.get(digest, (float("-inf"), None))
        return value if self._now() < until else None

    def put(self, digest: str, value: T, since: float) -> None:
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[digest] = (since + FOUND_S, value)


class UploadCheck:
    """A complete tree is cached for as long as it is guaranteed to stay complete."""

    def __init__(self, blobs: YardBlobs) -> None:
        self._blobs = blobs
        self._whole = _Found[Extent](blobs.now)
        self._there = _Found[bool](blobs.now)  # files that are no trees

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
        since, wanted = self._blobs.now(), {digest for digest in python.digests() if not self._there.get(digest)}
        missing = self._blobs.missing(wanted) if wanted else ()
        if missing:
            raise errors.InvalidInput(f"python_env: the yard has no file {min(missing)}", "send it first")
        for digest in wanted:
            self._there.put(digest, True, since)

    def _extent(self, digest: str, where: str) -> Extent:
        since, known = self._blobs.now(), self._whole.get(digest)
        if known is None:
            tree = self._read(digest, where)
            self._check_files(tree, where)
            known = Extent(len(tree.files), tree.size)
            self._whole.put(digest, known, since)
        return known

    def _read(self, digest: str, where: str) -> Tree:
        if not self._blobs.has(digest):
            raise errors.InvalidInput(f"{where}: the yard has no tree {digest}", SEND_FIRST)
        size = self._blobs.size(digest)
        if size > LARGEST_TREE:
            raise errors.InvalidInput(f"{where}: {digest} is too large for a tree", "split it into several folders")
        try:
            return Tree.parse(self._blobs.read(digest, 0, size))
        except errors.InvalidInput as error:
            raise errors.InvalidInput(f"{where}: {digest} is no tree: {error.message}", error.fix) from None

    def _check_files(self, tree: Tree, where: str) -> None:
        missing = self._blobs.missing(tree.digests())
        if missing:
            self._blobs.distrust(tree.digest)
            named = next(file.path for file in tree.files if file.digest in missing)
            raise errors.InvalidInput(
                f"{where}: the yard lacks {len(missing)} of the tree's files, such as {named!r}", SEND_FIRST
            )
