"""The yard's references to blobs: digests in specs, sweeps, recipes and requests, outputs, checkpoints, and the files
of all trees among them. If anything cannot be read, nothing is deleted."""

from __future__ import annotations

import re
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from runyard import errors
from runyard.blobs import Blobs
from runyard.store import Store, blob_deletions, blob_references, checkpoints
from runyard.yard.runs.upload_check import LARGEST_TREE

PAGE = 500  # specs that are read at once
FRESH_PREFIXES = 100_000  # that may be out of order: a set takes ten times as much memory
OUTPUTS_OF = 5000  # runs whose outputs are compared at once
PAUSE_S = 0.005  # after each page: this is never urgent, and others want to do something

P = ParamSpec("P")
T = TypeVar("T")

_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_TREE = re.compile(r'"tree": ?"(sha256:[0-9a-f]{64})"')


class BlobReferences:
    """For one thread. Specs do not change, so those that were read are cached."""

    def __init__(self, store: Store, blobs: Blobs) -> None:
        self._store, self._blobs = store, blobs
        self._named = Prefixes()  # in what stays for ever
        self._trees = Prefixes()  # whose files are among these
        self._last_run = 0
        self._saved: dict[str, array[int]] = {}  # files of checkpoints, which go one day

    def among(self, wanted: Collection[str]) -> set[str]:
        """Those of them that something refers to."""
        self._last_run = self._read_all(blob_references.specs, self._last_run)
        self._read_all(blob_references.sweeps, 0)
        self._note(self._read(blob_references.recipes))
        self._note(self._read(blob_references.requests))
        saved = self._saved_among({prefix(digest) for digest in wanted})
        named = {digest for digest in wanted if digest in self._named or prefix(digest) in saved}
        return named.union(*self._outputs()).intersection(wanted)

    # --- what stays for ever --------------------------------------------------------------------------------------

    def _read_all(self, read: Callable[[Connection, int, int], list[tuple[int, str]]], last: int) -> int:
        """Those after `last`; returns the number of the newest one. They are stored in the order of their
        numbers, so none appears later among those already read."""
        while page := self._read(read, last, PAGE):
            self._note(text for _, text in page)
            last = page[-1][0]
        return last

    def _note(self, texts: Iterable[str]) -> None:
        for text in texts:
            self._named.add(_DIGEST.findall(text))
            for tree in _TREE.findall(text):
                if tree not in self._trees:
                    self._named.add(self._files(tree))
                    self._trees.add([tree])

    # --- rows that can be deleted ---------------------------------------------------------------------------------

    def _saved_among(self, wanted: set[int]) -> set[int]:
        trees = self._read(checkpoints.trees)
        self._saved = {tree: self._saved[tree] for tree in trees if tree in self._saved}
        for tree in trees - set(self._saved):
            self._saved[tree] = array("Q", map(prefix, [tree, *self._files(tree)]))
        return {number for files in self._saved.values() for number in files if number in wanted}

    def _outputs(self) -> Iterator[set[str]]:
        last = self._read(blob_deletions.last_output)
        for first in range(1, last + 1, OUTPUTS_OF):
            yield self._read(blob_deletions.among_outputs, first, first + OUTPUTS_OF - 1)

    # --- reading --------------------------------------------------------------------------------------------------

    def _files(self, tree: str) -> list[str]:
        """The files that the tree names. A missing tree, or a blob that is no tree, has no files to keep."""
        try:
            size = self._blobs.size(tree)
            data = self._blobs.read(tree, 0, size) if size <= LARGEST_TREE else b""
        except errors.NotFound:
            return []
        return _DIGEST.findall(data.decode(errors="replace"))

    def _read(self, question: Callable[Concatenate[Connection, P], T], *args: P.args, **named: P.kwargs) -> T:
        time.sleep(PAUSE_S)
        with self._store.read() as connection:
            return question(connection, *args, **named)


class Prefixes:
    """Very many digests, each by its first 64 bits: another blob with the same first bits is kept, too."""

    def __init__(self, digests: Iterable[str] = ()) -> None:
        self._sorted = array("Q")
        self._fresh: set[int] = set()
        self.add(digests)

    def add(self, digests: Iterable[str]) -> None:
        for digest in digests:
            self._fresh.add(prefix(digest))
            if len(self._fresh) >= FRESH_PREFIXES:
                self._merge()

    def __contains__(self, digest: str) -> bool:
        number = prefix(digest)
        place = bisect_left(self._sorted, number)
        return number in self._fresh or (place < len(self._sorted) and self._sorted[place] == number)

    def _merge(self) -> None:
        self._sorted = array("Q", sorted(self._fresh.union(self._sorted)))
        self._fresh.clear()


def prefix(digest: str) -> int:
    return int(digest.removeprefix("sha256:")[:16], 16)
