"""The sweeps of a yard: submit them, create their runs within the limit, record the results of trials, and stop bad
ones early. Decisions are made one after the other, in the loop that reads metrics."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Any

from sqlalchemy import Connection

from runyard import errors
from runyard.broker.hints import Hints
from runyard.model import selectors
from runyard.model.metrics import Point
from runyard.model.roles import Caller
from runyard.model.states import FINAL, RunState
from runyard.model.sweep import SweepSpec
from runyard.model.sweep.objective import Objective
from runyard.model.sweep.runs import Place, run_spec
from runyard.model.wire import AttemptKey
from runyard.store import Store, cursors, runs, sweeps
from runyard.store.rows import AnyRow
from runyard.yard.blobs import YardBlobs
from runyard.yard.metrics import Metrics
from runyard.yard.runs import actions, submit
from runyard.yard.runs.upload_check import UploadCheck
from runyard.yard.sweeps import (
    decision_log,
    early_stopping,
    lookup,
    replay,
    run_creation,
    search,
    submission,
    trial_results,
    views,
)
from runyard.yard.sweeps.decision_log import Decision, Logs

SWEEPS_CHANGED = "sweeps"  # the hint that one of them has something to do
SHOWN_FIRST = 10  # configurations of a plan
MOST_ENDS = 1000  # of runs, in one transaction
READ_S = 2.0  # in one pass, of what runs that have ended reported
MOST_CANCELLED = 250  # in one transaction

logger = logging.getLogger(__name__)


class Sweeps:
    """`tick` and the metrics observer are for one thread at a time; all else may be called from any."""

    def __init__(self, store: Store, hints: Hints, blobs: YardBlobs, follow: Metrics) -> None:
        self._store, self._hints, self._blobs, self._metrics = store, hints, blobs, follow
        self._brought = UploadCheck(blobs)
        self._logs = Logs(store)
        self._searches: dict[int, tuple[SweepSpec, search.Search]] = {}
        self._seen = 0  # events that were looked at
        self._moved: list[int] = []  # runs that were stopped since the last hint to the agents
        self._observed: set[int] = set()  # sweeps whose logs have grown since they were last read
        self.is_hungry = True  # there are trials or runs to make, as far as was known in the last pass
        follow.observe(self._observe)

    # --- people -------------------------------------------------------------------------------------------------

    def submit(self, caller: Caller, sweep: SweepSpec) -> Future[dict[str, Any]]:
        """A new sweep, or the missing runs of an existing one."""
        listed = self._check(sweep)
        self._brought.check([sweep.run])

        def work(connection: Connection) -> dict[str, Any]:
            sweep_id, change = submission.submit(connection, self._store.now(), caller, sweep, listed)
            made = [place.run_id for place in sweeps.places(connection, sweep_id) if place.run_id is not None]
            return {"id": sweep_id, "runs": made, **change.to_json()}

        return self._store.write(work, lambda _: self._ring())

    def plan(self, caller: Caller, sweep: SweepSpec) -> dict[str, Any]:
        """What `submit` would do, checked the same way; nothing is stored."""
        listed = self._check(sweep)
        trials = (sweep.trials or 0) if sweep.method.learns else len(listed)
        with self._store.read() as connection:
            sites = submit.check(connection, caller.name, sweep.run)
            known, change = submission.plan(connection, caller, sweep, listed)
        shown = [sweep.complete(params) for params in listed[:SHOWN_FIRST]]
        return {
            "trials": trials, "reps": sweep.reps, "runs": trials * sweep.reps, "sites": sites,
            "configurations": shown, "document": sweep.to_json(), "sweep": known, **change.to_json(),
        }  # fmt: skip

    def _check(self, sweep: SweepSpec) -> list[dict[str, Any]]:
        """The configurations of a method that does not use results."""
        search.check_installed(sweep.method)
        submit.check_inputs(self._blobs, [sweep.run])
        listed = [] if sweep.method.learns else sweep.listed()
        if listed:
            first = Place(sweep=1, trial=1, rep=1, index=1, seed=0)
            run_spec(sweep, first, sweep.complete(listed[0])).argv()
        return listed

    def every(self, **page: Any) -> list[dict[str, Any]]:
        with self._store.read() as connection:
            return [views.sweep_view(connection, row) for row in sweeps.list_page(connection, **page)]

    def get(self, sweep_id: int) -> dict[str, Any]:
        with self._store.read() as connection:
            return views.sweep_view(connection, lookup.find(connection, sweep_id))

    def named(self, name: str) -> dict[str, Any]:
        with self._store.read() as connection:
            return views.sweep_view(connection, lookup.named(connection, name))

    def number_of(self, word: str) -> int:
        """The sweep with this number (`1`, `S1`) or name."""
        if not selectors.is_name(word):
            return selectors.sweep_number(word)
        with self._store.read() as connection:
            return int(lookup.named(connection, word).id)

    def trials(
        self, sweep_id: int, after: int, limit: int, objective: Objective | None = None
    ) -> list[dict[str, Any]]:  # fmt: skip
        """`objective`: to compare by, instead of the sweep's own."""
        with self._store.read() as connection:
            row = lookup.find(connection, sweep_id)
            return views.trial_views(connection, row, sweeps.trials_of(connection, sweep_id, after, limit), objective)

    def decisions(self, sweep_id: int, after: int, limit: int) -> list[dict[str, Any]]:
        with self._store.read() as connection:
            lookup.find(connection, sweep_id)
            return [views.decision_view(row) for row in sweeps.decisions_after(connection, sweep_id, after, limit)]

    def replay(self, sweep_id: int) -> dict[str, Any]:
        with self._store.read() as connection:
            row = lookup.find(connection, sweep_id)
            made = [(each.number, Decision.of(each)) for each in sweeps.decisions_after(connection, sweep_id, 0)]
        return replay.replay(sweep_id, lookup.parse(row.document), made)

    def cancel(self, caller: Caller, sweep_id: int) -> dict[str, Any]:
        """Create no more runs, and cancel the existing ones. In portions, so that other writes need not wait for all of
        it."""

        def forbid(connection: Connection) -> list[int]:
            row = _changeable(connection, caller, sweep_id)
            if views.has_ended(connection, row):
                return []  # it stays what it came to
            sweeps.change(connection, sweep_id, cancelled_at=row.cancelled_at or self._store.now(), hungry=0)
            return [place.run_id for place in sweeps.places(connection, sweep_id) if early_stopping.is_live(place)]

        def end(connection: Connection, some: Sequence[int]) -> None:
            for run in runs.get_many(connection, some):
                if RunState(run.state) not in FINAL:
                    actions.cancel(connection, self._store.now(), caller, run)

        ids = self._store.write(forbid).result()
        for start in range(0, len(ids), MOST_CANCELLED):
            some = ids[start : start + MOST_CANCELLED]
            self._store.write(lambda connection, some=some: end(connection, some)).result()  # type: ignore[misc]
            self._ring(some)
        return self.get(sweep_id)

    def retry(self, caller: Caller, sweep_id: int, states: Iterable[str]) -> Future[dict[str, Any]]:
        """Retry its runs in these states, except those that were stopped early."""
        wanted = set(states)

        def work(connection: Connection) -> dict[str, Any]:
            now, row = self._store.now(), _changeable(connection, caller, sweep_id)
            places = sweeps.places(connection, sweep_id)
            dead = [place for place in places if place.state in wanted and run_creation.is_dead(place)]
            if dead:
                sweeps.change(connection, sweep_id, cancelled_at=None)
                run_creation.start_again(connection, now, caller, row, lookup.parse(row.document), dead)
                run_creation.make_runs(connection, now, sweep_id)
            return {"id": sweep_id, "retried": len(dead)}

        return self._store.write(work, lambda _: self._ring())

    # --- what runs report -----------------------------------------------------------------------------------------

    def _observe(
        self, connection: Connection, now: float, run_id: int, _attempt: int, points: Sequence[Point]
    ) -> None:  # fmt: skip
        """Runs in the transaction that stores the points."""
        place = sweeps.place_of(connection, run_id)
        row = sweeps.get(connection, place.sweep_id) if place is not None else None
        if place is None or row is None:
            return
        sweep = lookup.parse(row.document)
        mine = early_stopping.objective_points(sweep, points)
        if not mine:
            return
        self._observed.add(row.id)
        history = self._logs.within(connection, row.id)
        if place.trial not in history.stopped:
            self._moved += early_stopping.observe(connection, now, row, sweep, history, place, mine)

    # --- the loop -------------------------------------------------------------------------------------------------

    def tick(self) -> bool:
        """One pass: record runs that have ended, and create those that the limit allows. True: there is more."""
        if self._moved:
            moved, self._moved = self._moved, []
            self._ring(moved)
        observed, self._observed = self._observed, set()
        for sweep_id in observed:
            self._logs.refresh(sweep_id)
        more = self.note_ends()
        return self._feed() or more

    def note_ends(self) -> bool:
        """Record runs that have ended, with all that they reported. True: there is more."""
        with self._store.read() as connection:
            cursor = cursors.get(connection, submission.CURSOR)
            if cursor is None:
                return False
            after, newest = max(cursor.position, self._seen), runs.newest_event(connection)
            ends = sweeps.ends_after(connection, after, newest, MOST_ENDS)
        is_full = len(ends) == MOST_ENDS
        last = ends[-1].id if is_full else newest
        if ends:
            if not self._metrics.catch_up({AttemptKey(run=end.run_id, attempt=end.attempt) for end in ends}, READ_S):
                return True
            self._store.write(lambda connection: self._tell(connection, ends, last)).result()
        self._seen = last
        return is_full

    def _tell(self, connection: Connection, ends: Sequence[AnyRow], last: int) -> None:
        cursor = cursors.get(connection, submission.CURSOR)
        if cursor is None or cursor.position >= last:  # another server was quicker
            return
        now = self._store.now()
        trials: dict[int, set[int]] = {}
        for end in (end for end in ends if end.id > cursor.position):
            trials.setdefault(end.sweep_id, set()).add(end.trial)
        for row in sweeps.get_many(connection, trials):
            objective = lookup.parse(row.document).objective
            if objective is not None:
                decision_log.append(
                    connection, now, row, trial_results.tell(connection, row, objective, trials[row.id])
                )
        cursors.change(connection, submission.CURSOR, position=last)

    def _feed(self) -> bool:
        with self._store.read() as connection:
            hungry = sweeps.hungry(connection)
        self.is_hungry = bool(hungry)
        self._searches = {row.id: self._searches[row.id] for row in hungry if row.id in self._searches}
        return any([self._feed_one(row) for row in hungry])

    def _feed_one(self, row: AnyRow) -> bool:
        """An error of one sweep does not delay others; it is logged, and tried again."""
        try:
            return self._make(row, lookup.parse(row.document))
        except Exception as error:
            told = error.message if isinstance(error, errors.RunyardError) else f"{type(error).__name__}: {error}"
            logger.warning("sweep S%d makes no runs: %s", row.id, told, extra={"action": "sweep_stuck"})
            detail = f"no more runs can be made now: {told}"
            self._store.write(lambda connection: sweeps.change(connection, row.id, detail=detail)).result()
            return False

    def _make(self, row: AnyRow, sweep: SweepSpec) -> bool:
        """Create runs for planned runs, and then trials. True: the sweep was changed in the meantime."""
        asked = self._ask(row, sweep) if sweep.method.learns else []

        def work(connection: Connection) -> tuple[bool, list[int]]:
            now, current = self._store.now(), lookup.find(connection, row.id)
            if (current.decided, current.made, current.changed_at) != (row.decided, row.made, row.changed_at):
                return True, []
            self._add_asked(connection, now, current, sweep, asked)
            return False, run_creation.make_runs(connection, now, row.id)

        again, made = self._store.write(work).result()
        if made:
            self._ring(made)
        return again

    def _ask(self, row: AnyRow, sweep: SweepSpec) -> list[Decision]:
        """As many trials as the limit allows; outside any transaction, because it may take long."""
        with self._store.read() as connection:
            room = run_creation.room(connection, row.id, sweep) or 0
            waiting = len(sweeps.unmade(connection, row.id, room)) if room else 0
        history, asked = self._logs.refresh(row.id), list[Decision]()
        while waiting + len(asked) * sweep.reps < room and row.made + len(asked) < row.planned:
            asked.append(self._search(row, sweep).ask(history.with_tail(asked), row.made + len(asked) + 1))
        return asked

    def _search(self, row: AnyRow, sweep: SweepSpec) -> search.Search:
        known = self._searches.get(row.id)
        if known is None or known[0] is not sweep:
            known = self._searches[row.id] = (sweep, search.Search(sweep))
        return known[1]

    def _add_asked(
        self, connection: Connection, now: float, row: AnyRow, sweep: SweepSpec, asked: Sequence[Decision]
    ) -> None:  # fmt: skip
        if not asked:
            return
        params = [sweep.complete(decision.body["chosen"]) for decision in asked]
        decision_log.append(connection, now, row, asked)
        for number in submission.add_trials(connection, row.id, row.made, params):
            submission.add_places(connection, row.id, sweep, [number])

    def _ring(self, moved: Iterable[int] = ()) -> None:
        for run_id in moved:
            self._hints.ring(f"run:{run_id}")
        self._hints.ring_all("site:")
        self._hints.ring(SWEEPS_CHANGED)


def _changeable(connection: Connection, caller: Caller, sweep_id: int) -> AnyRow:
    row = lookup.find(connection, sweep_id)
    if not caller.may_change(row.owner):
        raise errors.Forbidden(f"sweep S{sweep_id} belongs to {row.owner}", f"ask {row.owner} or an administrator")
    return row
