"""Silence is never success and never for ever: agents that stopped talking."""

from __future__ import annotations

from sqlalchemy import Connection

from runyard.model import units
from runyard.model.states import Reason, RunState
from runyard.store import attempts, places, runs
from runyard.store.rows import AnyRow
from runyard.yard import settle, views
from runyard.yard.evidence import Ending


def reap(connection: Connection, now: float, lease: float, lost_after: float) -> list[int]:
    """Mark what cannot be reached, and end what was silent too long. Returns the runs that moved."""
    moved: list[int] = []
    for agent in places.all_agents(connection):
        silence = now - agent.seen_at
        if views.is_silent(agent, now, lease) and not agent.unreachable:
            mark(connection, agent, now, f"agent {agent.name} of site {agent.site} is silent")
        if silence > lost_after:
            moved += _give_up(connection, now, agent, silence)
    return moved


def mark(connection: Connection, agent: AnyRow, now: float, why: str) -> None:
    """Unreachable is a detail, not an end: the processes may well be running."""
    places.change_agent(connection, agent.site, agent.name, unreachable=1, away=why)
    for row in attempts.alive(connection, agent.site, agent.name):
        runs.change(connection, row.run_id, detail=f"unreachable: {why}")
        settle.add_event(connection, now, row.run_id, row.number, "unreachable", f"unreachable: {why}")


def welcome(connection: Connection, agent: AnyRow, now: float) -> None:
    """It is back, and so is what it has."""
    for row in attempts.alive(connection, agent.site, agent.name):
        runs.change(connection, row.run_id, detail=row.detail)
        message = f"agent {agent.name} of site {agent.site} is back"
        settle.add_event(connection, now, row.run_id, row.number, "reachable", message)


def _give_up(connection: Connection, now: float, agent: AnyRow, silence: float) -> list[int]:
    moved: list[int] = []
    for row in attempts.alive(connection, agent.site, agent.name):
        run = runs.get(connection, row.run_id)
        assert run is not None
        detail = f"agent {agent.name} of site {agent.site} has been silent for {units.show_duration(silence)}"
        ending = Ending(state=RunState.FAILED, reason=Reason.LOST, detail=detail)
        moved += settle.end_attempt(connection, now, run, row, ending, proven=False)
    return moved
