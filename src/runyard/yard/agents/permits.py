"""When a run may be retried although there is no proof that its last attempt has ended.

Without a scheduler only its agent knows the state of an attempt. An attempt of a run that may be retried after a loss
has a permit: its runner ends it at most so many seconds after the agent's last message to the yard, whatever happens to
agent, yard and network. docs/internals/run-directory.md says how that is ensured.

| the agent                                       | attempt without a permit | attempt with one           |
|-------------------------------------------------|--------------------------|----------------------------|
| sends messages                                  | continues                | continues                  |
| is silent, or reports that its node is          | continues                | continues                  |
| … for permit + grace + margin                   | continues                | has ended, and is retried  |
| … for `lost_after`                              | is lost, for good        | as above                   |
"""

from __future__ import annotations

import enum
import functools
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from runyard import errors
from runyard.model import spec
from runyard.model.site import AGENT, LOCAL, SSH
from runyard.model.states import Reason
from runyard.store.rows import AnyRow

MARGIN_S = 15.0  # for clocks that do not run alike, and a machine so busy that even a SIGKILL takes a while
LEASES = 2  # an agent that comes once in a while must be able to miss a turn
CLOCK_SET_S = 5.0
BREAK_S = 30.0  # between two looks: meanwhile agents could not make themselves heard
UPTIME = functools.partial(time.clock_gettime, time.CLOCK_BOOTTIME)  # this clock cannot be set


class AttemptFate(enum.Enum):
    """State of an attempt whose agent cannot be reached."""

    GOES_ON = enum.auto()  # as far as is known
    GONE = enum.auto()  # proven by its permit
    LOST = enum.auto()  # nothing is proven, and it was silent for too long


def granted(site: AnyRow, agent: AnyRow, wanted: Mapping[str, Any], failures: int, seconds: float) -> float | None:
    """The permit of a new attempt, in seconds; None: no permit. `seconds` is the yard's setting."""
    if not seconds or not _may_be_cut_off(site):
        return None
    rule = spec.Retry.parse(wanted.get("retry", {"max": 0}))
    wants_another = "checkpoint" in wanted or (failures < rule.max and Reason.LOST in rule.on)
    return max(seconds, LEASES * agent.lease) if wants_another else None


def _may_be_cut_off(site: AnyRow) -> bool:
    """A scheduler knows its jobs, and an agent in the yard's own process is silent only together with the yard."""
    return bool(site.kind == SSH or (site.kind == LOCAL and json.loads(site.config).get("served_by") == AGENT))


def fate(silent_for: float, permit: float | None, grace: float, lost_after: float) -> AttemptFate:
    if permit is not None:
        return AttemptFate.GONE if silent_for >= lifetime(permit, grace) else AttemptFate.GOES_ON
    return AttemptFate.LOST if silent_for > lost_after else AttemptFate.GOES_ON


def lifetime(permit: float, grace: float) -> float:
    """How long any process of an attempt can live after its agent's last message."""
    return permit + grace + MARGIN_S


def grace_of(wanted: Mapping[str, Any]) -> float:
    try:
        return spec.Stop.parse(wanted.get("stop", {})).grace
    except errors.InvalidInput:  # a newer yard's words
        return spec.Stop().grace


class Vigil:
    """Since when silence counts: no server was listening before this process started, and setting a clock forward is no
    silence."""

    def __init__(self, now: Callable[[], float], steady: Callable[[], float] = UPTIME) -> None:
        self._now, self._steady = now, steady
        self._since = now()
        self._offset = self._since - steady()
        self._began_at = self._looked_at = steady()

    def since(self) -> float:
        offset = self._now() - self._steady()
        if abs(offset - self._offset) > CLOCK_SET_S:
            self._since = self._now()
        self._offset = offset
        return self._since

    def listening_for(self) -> float:
        """Seconds since the last interruption, such as an outage of the store: agents that were silent during it may
        still report."""
        now = self._steady()
        if now - self._looked_at > BREAK_S:
            self._began_at = now
        self._looked_at = now
        return now - self._began_at
