"""Act on the evidence of attempts: end those that have ended, start those again that did not start."""

from __future__ import annotations

from runyard.agent.attempts import Attempt, Phase
from runyard.agent.context import Context
from runyard.agent.part import Part
from runyard.agent.run import watch
from runyard.agent.run.end import Ends
from runyard.agent.run.start import Starter
from runyard.agent.run.stop import Stops
from runyard.agent.run.watch import Verdict
from runyard.backends.base import Presence

WORD_S = 45.0  # how long a scheduler may take to report why it ended a job


class Verdicts(Part):
    def __init__(self, context: Context, node: str, ends: Ends, stops: Stops, starter: Starter) -> None:
        self._context, self._node = context, node
        self._ends, self._stops, self._starter = ends, stops, starter

    def advance(self) -> None:
        absent = [attempt for attempt in self._context.book.in_phase(Phase.STARTED) if self._act_on(attempt)]
        self._starter.submit_again(absent)

    def _act_on(self, attempt: Attempt) -> bool:
        """True if it is to be submitted again."""
        now = self._context.clock()
        verdict = watch.verdict_on(attempt, now)
        if verdict is Verdict.OVER and self._waits_for_word(attempt, now):
            return False
        if verdict is Verdict.OVER:
            self._ends.end(attempt, attempt.sighting.text or "its processes are gone, and it left no record")
        elif verdict is Verdict.NOT_STARTED:
            return attempt.stop_reason is None
        elif verdict is Verdict.DOUBTFUL and watch.is_silent(attempt, now) and self._may_give_up(attempt):
            self._give_up(attempt)
        return False

    def _waits_for_word(self, attempt: Attempt, now: float) -> bool:
        """A runner that got a signal does not know from whom. A scheduler reports it soon."""
        unheard = attempt.sighting.presence is not Presence.GONE and now < attempt.status_at + WORD_S
        return attempt.wants_word and unheard and self._context.queue is not None

    def _may_give_up(self, attempt: Attempt) -> bool:
        """Silence on another machine proves nothing, and a run that is given up may be retried: so only a run that is
        being stopped anyway. With a queue, its scheduler decides."""
        if self._context.queue is not None:
            return False
        return attempt.sighting.node in (None, self._node) or attempt.stop_reason is not None

    def _give_up(self, attempt: Attempt) -> None:
        """In doubt for too long. If its runner ever wakes up, it finds the stop request before anything else."""
        self._stops.order(attempt.key, attempt.stop_reason or "lost")
        self._stops.advance()
        self._ends.end(attempt, attempt.sighting.text or "its runner stopped reporting")
