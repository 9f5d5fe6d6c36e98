"""Agents that stopped sending messages: mark them unreachable, and end what was silent too long."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from runyard.model import units
from runyard.model.states import Reason, RunState
from runyard.store import attempts, runs, site_rows
from runyard.store.rows import AnyRow
from runyard.yard import views
from runyard.yard.agents import permits
from runyard.yard.agents.permits import AttemptFate
from runyard.yard.runs import evidence, settle
from runyard.yard.runs.evidence import Ending


@dataclass(frozen=True, kw_only=True, slots=True)
class Deadlines:
    lease: float
    lost_after: float
    since: float = float("-inf")  # silence before that proves nothing: see `permits.Vigil`
    listening: float = float("inf")  # seconds for which agents could make themselves heard until now


def reap(connection: Connection, now: float, deadlines: Deadlines) -> list[int]:
    """Mark unreachable agents, and end attempts that were silent too long. Returns the runs that changed."""
    moved: list[int] = []
    for agent in site_rows.all_agents(connection):
        is_silent = views.is_silent(agent, now, deadlines.lease)
        if is_silent and not agent.unreachable:
            mark(connection, agent, now, f"agent {agent.name} of site {agent.site} is silent")
        if is_silent or agent.unreachable:
            for row in attempts.alive(connection, agent.site, agent.name):
                moved += _review(connection, now, agent, row, deadlines)
    return moved


def mark(connection: Connection, agent: AnyRow, now: float, why: str) -> None:
    """Unreachable is a detail, not an ending: the processes may still be running."""
    site_rows.change_agent(connection, agent.site, agent.name, unreachable=1, away=why)
    for row in attempts.alive(connection, agent.site, agent.name):
        detail = f"unreachable: {why}{_prospect(agent, row)}"
        runs.change(connection, row.run_id, detail=detail)
        settle.add_event(connection, now, row.run_id, row.number, "unreachable", detail)


def _prospect(agent: AnyRow, row: AnyRow) -> str:
    if row.permit is None or row.cancel_at is not None:
        return ""
    gone_by = agent.seen_at + permits.lifetime(row.permit, permits.grace_of(json.loads(row.spec)))
    at = datetime.fromtimestamp(gone_by + 59).astimezone()  # not before that minute
    return f"; will be tried again at {at:%H:%M %Z} if it stays silent"


def welcome(connection: Connection, agent: AnyRow, now: float) -> None:
    """Mark the agent and its attempts reachable again."""
    for row in attempts.alive(connection, agent.site, agent.name):
        runs.change(connection, row.run_id, detail=row.detail)
        message = f"agent {agent.name} of site {agent.site} is back"
        settle.add_event(connection, now, row.run_id, row.number, "reachable", message)


def _review(connection: Connection, now: float, agent: AnyRow, row: AnyRow, deadlines: Deadlines) -> list[int]:
    heard_at = agent.seen_at if row.permit is None else max(agent.seen_at, deadlines.since)
    grace = permits.grace_of(json.loads(row.spec))
    fate = permits.fate(now - heard_at, row.permit, grace, deadlines.lost_after)
    is_heard = deadlines.listening > max(deadlines.lease, agent.lease)
    if fate is AttemptFate.GOES_ON or (fate is AttemptFate.LOST and not is_heard):
        return []
    run = runs.get(connection, row.run_id)
    assert run is not None
    silence = units.show_duration(now - agent.seen_at)
    told = f"agent {agent.name} of site {agent.site} has been silent for {silence}"
    if fate is AttemptFate.GONE:
        ending = evidence.judge(
            None, f"{told}; its permit has run out", cancel_wished=run.cancel_at is not None,
            stop_detail=run.stop_detail,
        )  # fmt: skip
        return settle.end_attempt(connection, now, run, row, ending)
    ending = Ending(state=RunState.FAILED, reason=Reason.LOST, detail=told)
    return settle.end_attempt(connection, now, run, row, ending, proven=False)
