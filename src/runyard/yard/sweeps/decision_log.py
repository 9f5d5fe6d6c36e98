"""The decision log of a sweep: trials that the search chose, their results, and early stops with their reasons.

Everything that is decided follows from the sweep's document and the decisions before it, so that it can be replayed.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from runyard.store import Store, sweeps
from runyard.store.rows import AnyRow

MOST_KEPT = 64  # histories


class DecisionKind(enum.StrEnum):
    ASK = "ask"  # a trial was made: body {chosen, notes}
    TELL = "tell"  # all runs of a trial have ended: {state, value, low, high, n, step, rows, why}
    RUNG = "rung"  # a run has come to a rung: {rung, metric, step, value, newest, awaited, over}
    STOP = "stop"  # a trial is stopped: {rung, step, value, low, high, n, bound, of, detail}


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    kind: DecisionKind
    trial: int
    run_id: int | None = None
    body: Mapping[str, Any]

    @classmethod
    def of(cls, row: AnyRow) -> Decision:
        return cls(kind=DecisionKind(row.kind), trial=row.trial, run_id=row.run_id, body=json.loads(row.body))


Values = dict[int, dict[int, float]]  # of one rung: by trial, by run


@dataclass(frozen=True, slots=True)
class History:
    """The state that follows from a log. `add` changes it; `with_tail` does not."""

    asked: dict[int, Mapping[str, Any]] = field(default_factory=dict)  # by trial
    told: dict[int, Mapping[str, Any]] = field(default_factory=dict)  # by trial, the newest
    rungs: dict[int, Values] = field(default_factory=dict)
    heights: dict[int, int] = field(default_factory=dict)  # the highest rung of each run
    stopped: set[int] = field(default_factory=set)  # trials
    ends: set[float] = field(default_factory=set)  # steps at which runs were through

    def add(self, decision: Decision) -> None:
        _ADD[decision.kind](self, decision)

    def with_tail(self, tail: Sequence[Decision]) -> History:
        if not tail:
            return self
        rungs = {rung: {trial: dict(runs) for trial, runs in values.items()} for rung, values in self.rungs.items()}
        copy = History(
            dict(self.asked), dict(self.told), rungs, dict(self.heights), set(self.stopped), set(self.ends)
        )  # fmt: skip
        for decision in tail:
            copy.add(decision)
        return copy

    def _ask(self, decision: Decision) -> None:
        self.asked[decision.trial] = decision.body

    def _tell(self, decision: Decision) -> None:
        self.told[decision.trial] = decision.body
        self.ends.update(row["step"] for row in decision.body["rows"] if row["state"] == "succeeded" and row["step"])

    def _rung(self, decision: Decision) -> None:
        rung, run = decision.body["rung"], decision.run_id or 0
        self.rungs.setdefault(rung, {}).setdefault(decision.trial, {})[run] = float(decision.body["value"])
        self.heights[run] = max(rung, self.heights.get(run, -1))

    def _stop(self, decision: Decision) -> None:
        self.stopped.add(decision.trial)


_ADD = {
    DecisionKind.ASK: History._ask,
    DecisionKind.TELL: History._tell,
    DecisionKind.RUNG: History._rung,
    DecisionKind.STOP: History._stop,
}


class Logs:
    """Cached histories of sweeps, as of the last commit. For one thread at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[int, tuple[int, History]] = {}  # those that were looked at last are last

    def refresh(self, sweep_id: int) -> History:
        """With everything that is committed."""
        with self._store.read() as connection:
            number, history = self._known.pop(sweep_id, (0, History()))
            for row in sweeps.decisions_after(connection, sweep_id, number):
                history.add(Decision.of(row))
                number = row.number
        self._known[sweep_id] = (number, history)
        while len(self._known) > MOST_KEPT:
            self._known.pop(next(iter(self._known)))
        return history

    def within(self, connection: Connection, sweep_id: int) -> History:
        """With the rows of the open transaction, which may still be rolled back."""
        number, history = self._known.get(sweep_id) or (0, History())
        rows = sweeps.decisions_after(connection, sweep_id, number)
        return history.with_tail([Decision.of(row) for row in rows])


def append(connection: Connection, now: float, row: AnyRow, made: Iterable[Decision]) -> int:
    """Add decisions to the log of a sweep; the number of the last one. `row` is the sweep's, as it is now."""
    current = sweeps.get(connection, row.id)
    assert current is not None
    rows = [
        {
            "sweep_id": row.id, "number": number, "at": now, "kind": decision.kind, "trial": decision.trial,
            "run_id": decision.run_id, "body": json.dumps(decision.body, separators=(",", ":")),
        }
        for number, decision in enumerate(made, current.decided + 1)
    ]  # fmt: skip
    sweeps.add_decisions(connection, rows)
    last = int(rows[-1]["number"]) if rows else int(current.decided)
    sweeps.change(connection, row.id, decided=last)
    return last
