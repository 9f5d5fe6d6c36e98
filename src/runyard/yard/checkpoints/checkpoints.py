"""Checkpoints: recorded when uploaded, kept by the policy, and assigned to later attempts."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from sqlalchemy import Connection

from runyard import errors
from runyard.broker.hints import Hints
from runyard.model import units
from runyard.model.checkpoints import KEPT
from runyard.model.states import FINAL, Reason, RunState
from runyard.model.wire import Resume
from runyard.store import Store, attempts, checkpoints, runs, site_rows
from runyard.store.rows import AnyRow
from runyard.yard import views
from runyard.yard.placement.fair_share import Head
from runyard.yard.runs.lookup import find_run

PREFERRED_S = 15.0  # a run to be continued waits so long for the agent that has its checkpoints
NODES_FAULT = (Reason.NODE_LOST, Reason.LOST, Reason.LAUNCH)

RETRY, RESUME, AFRESH = "", "resume", "afresh"  # how a run is tried again: with what there is, only with it, without


class RunCheckpoints:
    """For users: the list of checkpoints, and the request for the current one."""

    def __init__(self, store: Store, hints: Hints) -> None:
        self._store, self._hints = store, hints

    def of_run(self, run_id: int) -> list[dict[str, Any]]:
        """Oldest first."""
        with self._store.read() as connection:
            return [view(row) for row in checkpoints.of_run(connection, find_run(connection, run_id).id)]

    def ask(self, run_id: int) -> Future[int]:
        """The number of the request for the current one; 0 when no agent has the run."""

        def work(connection: Connection) -> int:
            return _ask(connection, find_run(connection, run_id))

        return self._store.write(work, lambda number: self._hints.ring_all("site:") if number else None)

    def are_here(self, run_id: int, wish: int) -> bool:
        """Whether they answer the request, or are the last there will be."""
        with self._store.read() as connection:
            run = find_run(connection, run_id)
            row = attempts.get(connection, run_id, run.attempt)
        return RunState(run.state) in FINAL or (row is not None and 0 < wish <= row.brought_checkpoint)


def _ask(connection: Connection, run: AnyRow) -> int:
    if RunState(run.state) not in (RunState.STARTING, RunState.RUNNING):
        return 0
    row = attempts.get(connection, run.id, run.attempt)
    assert row is not None, "a run that somebody has has an attempt"
    attempts.change(connection, run.id, run.attempt, asked_checkpoint=row.asked_checkpoint + 1)
    return int(row.asked_checkpoint) + 1


def view(row: AnyRow) -> dict[str, Any]:
    return {
        "number": row.number,
        "attempt": row.attempt,
        "at": views.iso(row.at),
        "tree": row.tree,
        "size": row.size,
        "files": row.files,
        "site": row.site,
        "agent": row.agent,
    }


# --- what comes ---------------------------------------------------------------------------------------------------


def note(connection: Connection, now: float, run: AnyRow, attempt: AnyRow, told: Mapping[str, Any]) -> None:
    """The same tree again is not a new checkpoint. Rows that the policy does not keep are deleted."""
    rows = checkpoints.of_run(connection, run.id)
    facts = {"attempt": attempt.number, "at": now, "site": attempt.site, "agent": attempt.agent}
    if rows and rows[-1].tree == told["tree"]:
        checkpoints.change(connection, run.id, rows[-1].number, **facts)
        return
    number = (rows[-1].number if rows else 0) + 1
    checkpoints.insert_one(connection, {"run_id": run.id, "number": number, **told, **facts})
    whole = [row.number for row in rows if row.tree is not None] + ([number] if told["tree"] else [])
    beyond = whole[: -(json.loads(run.spec).get("checkpoint") or {}).get("keep", KEPT)]
    checkpoints.remove(connection, now, run.id, [*beyond, *(row.number for row in rows if row.tree is None)])


def newest_of(connection: Connection, run_id: int) -> AnyRow | None:
    return checkpoints.newest(connection, [run_id]).get(run_id)


# --- what a later attempt continues from --------------------------------------------------------------------------


def resumes(connection: Connection, site: str, agent: str, wanted: Mapping[int, int]) -> dict[int, Resume]:
    """For attempts with these numbers, on this site and agent; first attempts have no entry."""
    later = sorted(run_id for run_id, number in wanted.items() if number > 1)
    if not later:
        return {}
    saved = checkpoints.newest(connection, later)
    here: dict[int, int] = {}
    for row in checkpoints.places(connection, later):
        if (row.site, row.agent) == (site, agent) and row.number < wanted[row.run_id]:
            here[row.run_id] = row.number
    discarded = {row.id for row in runs.get_many(connection, later) if row.afresh == wanted[row.id] - 1}
    return {run_id: _resume(saved.get(run_id), here.get(run_id), run_id in discarded) for run_id in later}


def _resume(saved: AnyRow | None, here: int | None, afresh: bool) -> Resume:
    if afresh:
        return Resume(afresh=True)
    tree = saved.tree if saved is not None else None
    return Resume(tree=tree, held=here is not None and here >= (saved.attempt if saved is not None else 0))


def prospects(connection: Connection, found: Mapping[int, Resume]) -> dict[int, str]:
    """A sentence for each run whose next attempt does not simply continue from the files on its agent."""
    moved = {run_id: resume for run_id, resume in found.items() if not resume.held and not resume.afresh}
    if not moved:
        return {}
    saved = checkpoints.newest(connection, sorted(moved))
    last = {row.run_id: row for row in checkpoints.places(connection, sorted(moved))}
    return {
        run_id: _prospect(resume, saved.get(run_id), last[run_id]) for run_id, resume in moved.items() if run_id in last
    }


def _prospect(resume: Resume, saved: AnyRow | None, last: AnyRow) -> str:
    where = f"attempt {last.number} at {last.node or last.site}"
    if resume.tree is not None and saved is not None:
        size = units.show_size(saved.size)
        return f"resumes from checkpoint {saved.number} of attempt {saved.attempt} ({size}), which is fetched"
    if saved is not None:
        return f"starts from the beginning: what {where} saved is there, and was not sent to the yard"
    return f"starts from the beginning: nothing that {where} may have saved has come to the yard"


def elsewhere(connection: Connection, now: float, agent: AnyRow, heads: Collection[Head]) -> set[int]:
    """Runs that wait a moment for the agent that has their checkpoints: it may take them at its next sync."""
    recent = [head.id for head in heads if head.attempt > 0 and now - head.queued_at < PREFERRED_S]
    if not recent:
        return set()
    saved = checkpoints.newest(connection, recent)
    last = {row.run_id: row for row in checkpoints.places(connection, recent) if row.run_id in saved}
    homes = {(row.site, row.agent) for row in last.values()} - {(agent.site, agent.name)}
    alive = {home for home in homes if _takes_runs(connection, *home)}
    return {run_id for run_id, row in last.items() if (row.site, row.agent) in alive and row.reason not in NODES_FAULT}


def _takes_runs(connection: Connection, site: str, agent: str) -> bool:
    place, row = site_rows.site(connection, site), site_rows.agent(connection, site, agent)
    return place is not None and not place.drained and row is not None and not row.unreachable


# --- expiry -------------------------------------------------------------------------------------------------------


def set_aside(connection: Connection, now: float, run: AnyRow) -> None:
    """The next attempt starts from the beginning: earlier checkpoints are ignored."""
    checkpoints.remove(connection, now, run.id, [row.number for row in checkpoints.of_run(connection, run.id)])
    runs.change(connection, run.id, afresh=run.attempt)


def demand(connection: Connection, run: AnyRow) -> None:
    """Raises Conflict if there is no checkpoint to continue from."""
    if not checkpoints.of_run(connection, run.id):
        raise errors.Conflict(
            f"run {run.id} has saved nothing that it could go on from",
            f"start it from the beginning with `runyard retry {run.id}`",
        )


def expired(
    connection: Connection, now: float, kept_s: float, site: str, agent: str, run_ids: Iterable[int]
) -> dict[int, int]:
    """Runs that succeeded and whose checkpoints the yard has; others so long after their end. Rows of checkpoints that
    existed only there are deleted."""
    found: dict[int, int] = {}
    final = [run for run in runs.get_many(connection, run_ids) if RunState(run.state) in FINAL]
    saved = checkpoints.newest(connection, [run.id for run in final])
    for run in final:
        newest = saved.get(run.id)
        only_there = newest is not None and newest.tree is None
        if (run.state == RunState.SUCCEEDED and not only_there) or (run.ended_at or 0) < now - kept_s:
            found[run.id] = run.attempt
            if newest is not None and only_there and (newest.site, newest.agent) == (site, agent):
                checkpoints.remove(connection, now, run.id, [newest.number])
    return found
