"""Events of runs for external listeners: each gets every state change in order, at least once.

The position of a listener is in the store, so it misses nothing while the yard or the listener is down. A server that
sends to a listener reserves its cursor for a while first, so that several servers do not send at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from runyard.model.states import RunState
from runyard.store import Store, cursors
from runyard.store.rows import AnyRow
from runyard.yard import backoff, views

HELD_S = 60.0
LONGEST_PAUSE_S = 3600.0

STATES = {  # the state that each kind of event means; kinds without a state are not sent
    "submitted": RunState.QUEUED,
    "claimed": RunState.STARTING,
    "running": RunState.RUNNING,
    "retried": RunState.QUEUED,
    "continued": RunState.QUEUED,
    "succeeded": RunState.SUCCEEDED,
    "failed": RunState.FAILED,
    "cancelled": RunState.CANCELLED,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedPage:
    events: list[dict[str, Any]]
    failing_for: float  # seconds since the first of them was first tried in vain


class EventFeed:
    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self, listener: str) -> None:
        """Register a listener: it gets the events from now on, at once or later."""
        now = self._store.now()
        self._store.write(lambda connection: cursors.begin(connection, listener, now)).result()

    def take(self, listener: str, limit: int) -> FeedPage | None:
        """New events for the listener that may be sent now, reserved for us."""
        with self._store.read() as connection:
            if not self._due(connection, listener, 1):
                return None
        return self._store.write(lambda connection: self._hold(connection, listener, limit)).result()

    def _due(self, connection: Connection, listener: str, limit: int) -> list[AnyRow]:
        cursor = cursors.get(connection, listener)
        if cursor is None or cursor.next_try > self._store.now():
            return []
        return cursors.events_after(connection, cursor.position, STATES, limit)

    def _hold(self, connection: Connection, listener: str, limit: int) -> FeedPage | None:
        now, rows = self._store.now(), self._due(connection, listener, limit)
        if not rows:
            return None
        since = getattr(cursors.get(connection, listener), "failing_since", None)
        cursors.change(connection, listener, next_try=now + HELD_S)
        return FeedPage(events=[_event(row) for row in rows], failing_for=now - since if since is not None else 0.0)

    def told(self, listener: str, position: int, *, more: bool = False) -> None:
        """It has everything up to this event. `more`: keep the reservation, there is more to send."""
        now = self._store.now()
        next_try = now + HELD_S if more else now
        self._change(listener, position=position, tries=0, failing_since=None, trouble=None, next_try=next_try)

    def failed(self, listener: str, trouble: str) -> None:
        """The next event could not be sent: try again later, with a longer pause each time."""

        def work(connection: Connection) -> None:
            cursor = cursors.get(connection, listener)
            if cursor is not None:
                now = self._store.now()
                pause = backoff.after(cursor.tries, LONGEST_PAUSE_S)
                cursors.change(
                    connection, listener, tries=cursor.tries + 1, failing_since=cursor.failing_since or now,
                    trouble=trouble, next_try=now + pause,
                )  # fmt: skip

        self._store.write(work).result()

    def give_back(self, listener: str) -> None:
        """Release it without a try."""
        self._change(listener, next_try=self._store.now())

    def _change(self, listener: str, **values: Any) -> None:
        self._store.write(lambda connection: cursors.change(connection, listener, **values)).result()


def _event(row: AnyRow) -> dict[str, Any]:
    """Without the inputs of the run: commands, variables and parameters are only for users who may see the run."""
    return {
        "id": row.id,
        "event": f"run.{STATES[row.kind]}",
        "state": STATES[row.kind].value,
        "run": row.run_id,
        "attempt": row.attempt,
        "at": views.iso(row.at),
        "message": row.message,
        "project": row.project,
        "name": row.name,
        "owner": row.owner,
        "recipe": row.recipe,
        "site": row.site,
    }
