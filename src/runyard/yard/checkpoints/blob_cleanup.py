"""The loop that deletes blobs of expired checkpoints. It may be killed between any two lines: an interrupted deletion
is repeated, and everything else is checked again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from runyard import errors
from runyard.blobs import RemovableBlobs
from runyard.loop import Loop
from runyard.model.tree import Tree
from runyard.store import Store, blob_deletions
from runyard.store.blob_deletions import DeletionState
from runyard.yard.blobs import GRACE_S
from runyard.yard.checkpoints.references import BlobReferences
from runyard.yard.runs.upload_check import LARGEST_TREE
from runyard.yard.yard import Yard

TAKE_OVER_S = 600.0  # deletions of another process are left to it for so long
FORGET_S = 3600.0  # what is gone counts as missing for so long, whatever a file system remembers of it
AT_ONCE = 500  # blobs that are removed, or files that are condemned, between two commits
LATE_S = GRACE_S  # what is overdue by so long is worth it, also for a process that must read everything first
MOST = 50_000  # in one pass

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)


class BlobCleanup(Loop):
    again_s = 600.0

    def __init__(self, yard: Yard, late_s: float = 0.0) -> None:
        """`late_s`: do nothing until something is overdue by so long; then delete all that is due."""
        super().__init__("clearing")
        self._store: Store = yard.store
        self._blobs: RemovableBlobs = yard.blob_store.blobs
        self._references = BlobReferences(yard.store, self._blobs)
        self._late_s = late_s

    def tick(self) -> bool:
        try:
            self._take_over()
            self._expand()
            return self._clear()
        except (errors.RunyardError, OSError) as error:
            log.warning("blobs of expired checkpoints are not deleted now: %s", error, extra={"action": "not_cleared"})
            return False

    # --- what was pruned ------------------------------------------------------------------------------------------

    def _expand(self) -> None:
        """Trees may be large, so this is not done in the transaction that deletes their checkpoints."""
        while trees := self._in_state(DeletionState.PRUNED, AT_ONCE):
            for tree in trees:
                for some in _portions(self._files(tree)):
                    self._write(blob_deletions.condemn, some)
                self._write(blob_deletions.expanded, tree)

    def _files(self, tree: str) -> list[str]:
        try:
            size = self._blobs.size(tree)
            return list(Tree.parse(self._blobs.read(tree, 0, size)).digests()) if size <= LARGEST_TREE else []
        except (errors.NotFound, errors.InvalidInput):
            return []  # the agent was wrong to call it one

    # --- blobs without references ---------------------------------------------------------------------------------

    def _clear(self) -> bool:
        began = self._store.now()
        before = began - GRACE_S
        if not self._in_state(DeletionState.CONDEMNED, 1, before - self._late_s):
            return False
        due = self._in_state(DeletionState.CONDEMNED, MOST, before)
        wanted = self._references.among(due)
        for some in _portions(sorted(wanted)):
            self._write(blob_deletions.acquit, some, before)
        for some in _portions([digest for digest in due if digest not in wanted]):
            self._remove(self._write(blob_deletions.claim, some, before))
        return len(due) == MOST

    def _remove(self, going: Collection[str]) -> None:
        if going:
            self._blobs.remove(going)
            self._write(blob_deletions.removed, going)
            log.info("%d files of expired checkpoints are deleted", len(going), extra={"action": "cleared"})

    def _take_over(self) -> None:
        """Deletions whose process was killed. Much later: a slow process must not delete what was uploaded again
        since."""
        now = self._store.now()
        while going := self._in_state(DeletionState.GOING, AT_ONCE, now - TAKE_OVER_S):
            self._remove(going)
        if self._in_state(DeletionState.GONE, 1, now - FORGET_S):
            self._write(blob_deletions.forget, now - FORGET_S)

    def _write(self, work: Callable[Concatenate[Connection, float, P], T], *args: P.args, **named: P.kwargs) -> T:
        return self._store.write(lambda connection: work(connection, self._store.now(), *args, **named)).result()

    def _in_state(self, fate: DeletionState, limit: int, before: float | None = None) -> list[str]:
        with self._store.read() as connection:
            return blob_deletions.in_state(connection, fate, limit, before)


def _portions(digests: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(digests), AT_ONCE):
        yield digests[start : start + AT_ONCE]
