"""The state of a job, from the queue, the accounting and its directory: one pure function with one table.

| queue            | accounts | directory                        | the job is                                      |
|------------------|----------|----------------------------------|-------------------------------------------------|
| waiting          | –        | –                                | pending                                         |
| waiting again    | –        | `started`                        | gone: preempted                                 |
| running          | –        | –                                | alive                                           |
| running, on a node out of the scheduler's sight | runner silent for long | gone: node_lost                     |
| given up (Eqw)   | –        | –                                | gone: launch                                    |
| over             | –        | –                                | gone, by the scheduler's word                   |
| nothing          | over     | –                                | gone, by the scheduler's word                   |
| over or waiting again, not killed by it | no record, runner heard of late | unknown: it is told to end |
| nothing          | nothing  | an exit record                   | gone                                            |
| nothing          | nothing  | `started`, runner heard of late  | unknown                                         |
| nothing          | nothing  | `started`, runner silent for long| gone: it is not known how                       |
| nothing          | nothing  | never handed over                | absent                                          |
| nothing          | nothing  | handed over a moment ago         | unknown: it may be on its way                   |
| nothing          | nothing  | native output, of late           | unknown                                         |
| nothing          | nothing  | native output, but no `started`  | gone: launch                                    |
| its array, without it | –   | acknowledged in this array       | gone: deleted from the queue                    |
| nothing          | nothing  | acknowledged, by one that never forgets | gone: deleted from the queue             |
| nothing          | nothing  | handed over long ago             | absent                                          |

A failed query is not in this table: it makes every job unknown.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from runyard.backends.base import Ending, Presence, Sighting
from runyard.backends.batch.dialect import Dialect, Native, Stage
from runyard.backends.batch.files import Trace
from runyard.model import units

SILENT_S = 40.0  # a runner beats every five seconds; with the time to the next poll it is reported within a minute
BEATING_S = 20.0  # a runner of which the scheduler thinks that it is gone: four beats
MOST_WORDS = 300
UNSEEN = "; it left no word, so its node may not see the site's directory: check it with `runyard site test`"

NO_TRACE = Trace()
_ORDER = (Stage.RUNNING, Stage.WAITING, Stage.STUCK, Stage.UNCLEAR, Stage.OVER)


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What is known of one job."""

    natives: Sequence[Native] = ()  # under its name in the queue
    account: Native | None = None
    trace: Trace = NO_TRACE
    array_is_known: bool = False  # the native job in which it was acknowledged is known to the scheduler

    @property
    def native(self) -> Native | None:
        """The scheduler's report: accounting has more details about an end than the queue."""
        queued = foremost(self.natives)
        return self.account or queued if queued is None or queued.is_over else queued

    @property
    def is_given_up(self) -> bool:
        """The scheduler knows it, and no longer executes it."""
        return self.native is not None and (self.native.is_over or self.native.again)


@dataclass(frozen=True, kw_only=True, slots=True)
class Court:
    """Parameters of the decision: the scheduler's dialect, and how long a submit may take."""

    dialect: Dialect
    submit_window: float

    def judge(self, evidence: Evidence) -> Sighting:
        native = evidence.native
        if native is None:
            return self._unheard_of(evidence.trace, evidence.array_is_known)
        return _BY_STAGE[native.stage](self, native, evidence.trace)

    def waits(self, native: Native, trace: Trace) -> Sighting:
        if native.again and trace.started:
            return self._taken_back(native, trace)
        because = f": {native.why}" if native.why else ""
        expected = f", expected {_moment(native.expected)}" if native.expected else ""
        return _seen(Presence.PENDING, native, f"pending in {self.dialect.title}{because}{expected}")

    def runs(self, native: Native, trace: Trace) -> Sighting:
        if native.node_is_silent:
            return self._out_of_sight(native, trace)
        told = f"{native.word.lower()} in {self.dialect.title}" if native.word in _WORTH_TELLING else ""
        return _seen(Presence.ALIVE, native, told or ("" if len(native.why) < 2 else native.why))

    def is_stuck(self, native: Native, trace: Trace) -> Sighting:
        told = f"{self.dialect.title} could not start it: {native.why}"
        return _seen(Presence.GONE, native, told, "launch")

    def is_over(self, native: Native, trace: Trace) -> Sighting:
        """The script only ever starts the runner, so an end before the runner began is a failure to launch."""
        ending = native.ending or self.dialect.ending_of_words(trace.words)
        told = f"{self.dialect.title}: {native.word}"
        told += f", {native.numbers}" if native.numbers else f" ({native.why})" if native.why else ""
        told += f" on {native.node}" if native.node else ""
        if not trace.started and ending in (None, "launch"):
            ending = "launch"
            told += "" if trace.words else UNSEEN
        told = _with_words(told, trace, ending)
        if trace.started and ending not in _KILLED:
            return _gone_unless_it_beats(native, told, trace, ending)
        return _seen(Presence.GONE, native, told, ending)

    def is_unclear(self, native: Native, trace: Trace) -> Sighting:
        return _seen(Presence.UNKNOWN, native, f"{self.dialect.title} calls it {native.word!r}")

    def _taken_back(self, native: Native, trace: Trace) -> Sighting:
        """Its second start would find `started`, and exit: the run's own retry rule decides how it continues."""
        told = f"{self.dialect.title} took it off its node and back into its queue ({native.why or native.word})"
        return _gone_unless_it_beats(native, told, trace, "preempted")

    def _out_of_sight(self, native: Native, trace: Trace) -> Sighting:
        told = f"{self.dialect.title} has lost sight of its node {native.node}"
        if trace.quiet is None or trace.quiet < SILENT_S:
            return _seen(Presence.ALIVE, native, told)
        heard = units.show_duration(trace.quiet)
        return _seen(Presence.GONE, native, f"{told}, and its runner was last heard {heard} ago", "node_lost")

    def _unheard_of(self, trace: Trace, array_is_known: bool) -> Sighting:
        title = self.dialect.title
        if trace.recorded:
            return Sighting(presence=Presence.GONE, text="it left a record")
        if trace.started:
            heard = units.show_duration(trace.quiet)
            told = f"{title} does not know it any more, and its runner was last heard {heard} ago"
            if trace.quiet is None or trace.quiet < SILENT_S:
                return Sighting(presence=Presence.UNKNOWN, text=told)
            ending = self.dialect.ending_of_words(trace.words)
            return Sighting(presence=Presence.GONE, text=_with_words(told, trace, ending), ending=ending)
        if trace.spoke is not None:
            return self._began_in_vain(trace, trace.spoke)
        if trace.entered is None:
            return Sighting(presence=Presence.ABSENT, text=f"it was never handed to {title}")
        if trace.entered < self.submit_window:
            return Sighting(presence=Presence.UNKNOWN, text=f"it may be on its way to {title}")
        if trace.accepted and (array_is_known or self.dialect.remembers):
            told = f"it was deleted from {title}'s queue before it began"
            return Sighting(presence=Presence.GONE, text=told, ending="external")
        return Sighting(presence=Presence.ABSENT, text=f"{title} knows nothing of it")

    def _began_in_vain(self, trace: Trace, spoke: float) -> Sighting:
        """The native job started, its runner did not. Accounting may be late."""
        told = f"{self.dialect.title} does not know it any more, and its runner never began"
        if spoke < SILENT_S:
            return Sighting(presence=Presence.UNKNOWN, text=told)
        ending = self.dialect.ending_of_words(trace.words) or "launch"
        return Sighting(presence=Presence.GONE, text=_with_words(told, trace, ending), ending=ending)


_KILLED = frozenset({"external", "timeout", "oom", "launch"})  # by the scheduler itself, which sees it through
_WORTH_TELLING = frozenset({"SUSPENDED", "STOPPED", "CONFIGURING", "COMPLETING"})
_BY_STAGE = {
    Stage.WAITING: Court.waits,
    Stage.RUNNING: Court.runs,
    Stage.STUCK: Court.is_stuck,
    Stage.OVER: Court.is_over,
    Stage.UNCLEAR: Court.is_unclear,
}


def foremost(natives: Sequence[Native]) -> Native | None:
    """Of several under one name, as after a repeated submit, the one that is alive."""
    return min(natives, key=lambda native: _ORDER.index(native.stage), default=None)


def needs_trace(natives: Sequence[Native]) -> bool:
    """Whether the directory is evidence: not while the scheduler has the job."""
    native = foremost(natives)
    return native is None or native.is_over or native.node_is_silent or native.again


def _seen(presence: Presence, native: Native, text: str, ending: Ending | None = None) -> Sighting:
    return Sighting(presence=presence, text=text, native_id=native.id, ending=ending, node=native.node or None)


def _gone_unless_it_beats(native: Native, told: str, trace: Trace, ending: Ending | None) -> Sighting:
    """The scheduler gave it up; but on a node that only lost its daemon the runner continues, and the record of one
    that ended may be seen late. It is requested to stop; until it has, or falls silent, no other attempt may start."""
    heard = f"its runner was last heard {units.show_duration(trace.quiet)} ago"
    if trace.recorded or trace.quiet is None:
        return _seen(Presence.GONE, native, told, ending)
    if trace.quiet < BEATING_S:
        return _seen(Presence.UNKNOWN, native, f"{told}; but {heard}", ending)
    return _seen(Presence.GONE, native, f"{told}; {heard}", ending)


def _with_words(told: str, trace: Trace, ending: Ending | None) -> str:
    """The output of the native job explains a failed launch, and an end without an accounting record."""
    if not trace.words or (ending not in (None, "launch") and trace.started):
        return told
    return f"{told}; it said: {trace.words[-MOST_WORDS:]}"


def _moment(text: str) -> str:
    """`14:05` of today, `2026-11-16 14:05` of another day."""
    day, _, clock = text.partition("T")
    short = clock[:5]
    return short if day == time.strftime("%Y-%m-%d") else f"{day} {short}"
