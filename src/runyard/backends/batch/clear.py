"""Clearing away what is left on disk of batches that nobody asks about any more."""

from __future__ import annotations

import logging
from collections.abc import Collection

from runyard.backends.batch.dialect import Unanswered
from runyard.backends.batch.files import Files
from runyard.backends.batch.watch import Watch

log = logging.getLogger(__name__)


def clear(files: Files, watch: Watch, prefix: str, owner: str, kept: Collection[str]) -> bool:
    """Of what the queue still has, a task may yet begin: it looks for its directory in the manifest."""
    try:
        over = set(files.owned(prefix, owner)) - set(kept)
        there = over & watch.busy_batches() if over else set()
        if over > there:
            files.remove(over - there)
    except Unanswered as error:
        log.info("what is left of old batches stays where it is for now: %s", error)
        return False
    return not there
