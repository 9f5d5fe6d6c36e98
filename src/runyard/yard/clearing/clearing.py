"""The loop that removes what belonged to checkpoints which went. It may be killed between any two lines: what is being
removed is removed again, and what was not is looked at again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from runyard import errors
from runyard.blobs import RemovableBlobs
from runyard.loop import Loop
from runyard.model.tree import Tree
from runyard.store import Store, condemned
from runyard.store.condemned import Fate
from runyard.yard.brought import LARGEST_TREE
from runyard.yard.clearing.references import References
from runyard.yard.kept import GRACE_S
from runyard.yard.yard import Yard

TAKE_OVER_S = 600.0  # what somebody else has begun to remove is left to them for so long
FORGET_S = 3600.0  # what is gone counts as missing for so long, whatever a file system remembers of it
AT_ONCE = 500  # blobs that are removed, or files that are condemned, between two commits
LATE_S = GRACE_S  # what is overdue by so long is worth it, also for a process that must read everything first
MOST = 50_000  # in one pass

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)


class Clearing(Loop):
    again_s = 600.0

    def __init__(self, yard: Yard, late_s: float = 0.0) -> None:
        """`late_s`: nothing is looked for before something is overdue by so long; then all that is due goes."""
        super().__init__("clearing")
        self._store: Store = yard.store
        self._blobs: RemovableBlobs = yard.blob_store.blobs
        self._references = References(yard.store, self._blobs)
        self._late_s = late_s

    def tick(self) -> bool:
        try:
            self._take_over()
            self._expand()
            return self._clear()
        except (errors.RunyardError, OSError) as error:
            log.warning("what checkpoints have left is not removed now: %s", error, extra={"action": "not_cleared"})
            return False

    # --- what was pruned ------------------------------------------------------------------------------------------

    def _expand(self) -> None:
        """Trees may be large, so this is not done in the transaction in which their checkpoints go."""
        while trees := self._in_state(Fate.PRUNED, AT_ONCE):
            for tree in trees:
                for some in _portions(self._files(tree)):
                    self._write(condemned.condemn, some)
                self._write(condemned.expanded, tree)

    def _files(self, tree: str) -> list[str]:
        try:
            size = self._blobs.size(tree)
            return list(Tree.parse(self._blobs.read(tree, 0, size)).digests()) if size <= LARGEST_TREE else []
        except (errors.NotFound, errors.InvalidInput):
            return []  # the agent was wrong to call it one

    # --- what nobody wants ----------------------------------------------------------------------------------------

    def _clear(self) -> bool:
        began = self._store.now()
        before = began - GRACE_S
        if not self._in_state(Fate.CONDEMNED, 1, before - self._late_s):
            return False
        due = self._in_state(Fate.CONDEMNED, MOST, before)
        wanted = self._references.among(due)
        for some in _portions(sorted(wanted)):
            self._write(condemned.acquit, some, before)
        for some in _portions([digest for digest in due if digest not in wanted]):
            self._remove(self._write(condemned.claim, some, before))
        return len(due) == MOST

    def _remove(self, going: Collection[str]) -> None:
        if going:
            self._blobs.remove(going)
            self._write(condemned.removed, going)
            log.info("%d files of earlier checkpoints are removed", len(going), extra={"action": "cleared"})

    def _take_over(self) -> None:
        """What somebody was killed over. Much later: who is only slow must not remove what was sent again meanwhile."""
        now = self._store.now()
        while going := self._in_state(Fate.GOING, AT_ONCE, now - TAKE_OVER_S):
            self._remove(going)
        if self._in_state(Fate.GONE, 1, now - FORGET_S):
            self._write(condemned.forget, now - FORGET_S)

    def _write(self, work: Callable[Concatenate[Connection, float, P], T], *args: P.args, **named: P.kwargs) -> T:
        return self._store.write(lambda connection: work(connection, self._store.now(), *args, **named)).result()

    def _in_state(self, fate: Fate, limit: int, before: float | None = None) -> list[str]:
        with self._store.read() as connection:
            return condemned.in_state(connection, fate, limit, before)


def _portions(digests: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(digests), AT_ONCE):
        yield digests[start : start + AT_ONCE]
