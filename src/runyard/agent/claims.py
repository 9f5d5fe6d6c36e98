"""Accept claimed attempts: new ones, and after a hello those of an earlier incarnation."""

from __future__ import annotations

import logging

from runyard.agent.attempts import Attempt
from runyard.agent.bring.directory import Stager
from runyard.agent.context import Context
from runyard.agent.part import Part
from runyard.agent.report.log import Relay
from runyard.agent.run.start import Starter
from runyard.agent.run.stop import Stops
from runyard.agent.run.watch import Watch
from runyard.agent.sync import Sync
from runyard.hosts.base import Unreachable
from runyard.model.states import AttemptState
from runyard.model.wire import Claim, SyncResponse

SITE_PAUSE_S = 5.0  # after the site could not be reached

log = logging.getLogger(__name__)


class Claims(Part):
    def __init__(
        self, context: Context, stager: Stager, watch: Watch, relay: Relay, starter: Starter, stops: Stops, sync: Sync
    ) -> None:
        self._book, self._queue, self._stager = context.book, context.queue, stager
        self._watch, self._relay, self._starter, self._stops, self._sync = watch, relay, starter, stops, sync

    def heard(self, answer: SyncResponse) -> None:
        for claim in answer.claims:
            if claim.key not in self._book:
                attempt = self._stager.receive(claim)
                self._relay.expect_nothing_held(attempt)
                self._book.add(attempt)

    def owned(self, claims: list[Claim]) -> None:
        """Resume the attempts of an earlier incarnation, by the evidence in their directories.

        An attempt holds its slots until its end is seen; one that was not started waits for slots again.
        """
        unknown = [claim for claim in claims if claim.key not in self._book]
        if not unknown:
            return
        try:
            adopted = self._stager.recall(unknown)
            self._watch.scan(adopted, with_bytes=False)
        except Unreachable as error:  # without evidence their state is unknown: the next hello lists them again
            log.warning("attempts cannot be resumed yet: %s", error)
            self._sync.begin_again(SITE_PAUSE_S)
            return
        self._watch.poll_soon()
        for attempt in adopted:
            self._book.add(attempt)
            self._take_up(attempt)

    def _take_up(self, attempt: Attempt) -> None:
        if not (attempt.made_started or attempt.claim.state is AttemptState.RUNNING):
            self._relay.expect_nothing_held(attempt)
            return
        log.info("attempt %s is resumed", attempt.key)
        self._relay.expect_something_held(attempt)
        self._starter.adopt(attempt)
        if self._queue is not None and attempt.prevented:
            # The process that wrote it may have died before it cancelled the job.
            self._stops.order(attempt.key, attempt.prevented)
