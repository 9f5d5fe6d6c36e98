"""Clearing away what is left of batches that nobody asks about any more: on disk, and in the queue."""

from __future__ import annotations

import logging
from collections.abc import Collection

from runyard.backends.batch.dialect import Unanswered
from runyard.backends.batch.files import Files
from runyard.backends.batch.scheduler import Scheduler
from runyard.backends.batch.watch import Watch

log = logging.getLogger(__name__)


def clear(
    files: Files, watch: Watch, scheduler: Scheduler, prefix: str, owner: str, kept: Collection[str]
) -> bool:  # fmt: skip
    """Of what the queue still has, a task may yet begin: it looks for its directory in the manifest. What only waits is
    taken out: whoever stopped it may have been gone before it came to that."""
    try:
        over = set(files.owned(prefix, owner)) - set(kept)
        there = over & watch.busy_batches() if over else set()
        if over > there:
            files.remove(over - there)
        forsaken = watch.waiting(there) if there else []
        if forsaken:
            scheduler.cancel(forsaken)
    except Unanswered as error:
        log.info("what is left of old batches stays where it is for now: %s", error)
        return False
    return not there
