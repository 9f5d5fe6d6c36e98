"""Dependencies between runs: the gates at which runs wait, and when these open."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from runyard.model.spec import RunSpec
from runyard.model.states import FINAL, RunState
from runyard.store import dependency_gates, runs
from runyard.store.dependency_gates import Gate, GateKind
from runyard.store.rows import AnyRow

FEW = 20  # runs behind a gate whose detail is updated each time


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """The initial state of a run, given the runs it depends on."""

    blocked: int = 0
    detail: str | None = None
    hopeless: bool = False  # one that had to succeed has not


class DependencyPlan:
    """The gates of runs that are submitted together."""

    def __init__(self, ids: Collection[int], parents: Mapping[int, AnyRow]) -> None:
        self._ids, self._parents = ids, parents
        self._shared: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[Gate, list[int], Outlook]] = {}
        self._turns: list[Gate] = []

    def add(self, run_id: int, spec: RunSpec) -> Outlook:
        outlook = self._behind_shared(run_id, spec) if spec.after or spec.after_any else Outlook()
        turn = _turn(run_id, spec)
        if turn is None or turn not in self._ids:
            return outlook
        self._turns.append(Gate(parents={turn: GateKind.TURN}, children=[run_id], shut=True))
        detail = outlook.detail or waits_for(turn, 1)
        return Outlook(blocked=outlook.blocked + 1, detail=detail, hopeless=outlook.hopeless)

    def gates(self) -> list[Gate]:
        return [gate for gate, _, _ in self._shared.values()] + self._turns

    def _behind_shared(self, run_id: int, spec: RunSpec) -> Outlook:
        key = (spec.after, spec.after_any)
        if key not in self._shared:
            members: list[int] = []
            outlook = self._outlook(spec)
            kinds = {**dict.fromkeys(spec.after, GateKind.OK), **dict.fromkeys(spec.after_any, GateKind.ANY)}
            gate = Gate(parents=kinds, children=members, shut=outlook.blocked > 0)
            self._shared[key] = gate, members, outlook
        _, members, outlook = self._shared[key]
        members.append(run_id)
        return outlook

    def _outlook(self, spec: RunSpec) -> Outlook:
        asked = dict.fromkeys(spec.after + spec.after_any)
        ahead = [parent for parent in asked if RunState(self._parents[parent].state) not in FINAL]
        bad = [parent for parent in spec.after if self._parents[parent].state in (RunState.FAILED, RunState.CANCELLED)]
        if bad:
            return Outlook(detail=no_more(bad[0], self._parents[bad[0]].state), hopeless=True)
        return Outlook(blocked=int(bool(ahead)), detail=waits_for(ahead[0], len(ahead)) if ahead else None)


def _turn(run_id: int, spec: RunSpec) -> int | None:
    """If only `limit` tasks of an array may run together, each depends on the one `limit` positions before it."""
    array = spec.array
    if array is None or array.limit is None or array.offset < array.limit:
        return None
    return run_id - array.limit


def review(connection: Connection, gate_id: int) -> None:
    """A run that the gate waits for has ended: open the gate, or update what its runs still wait for."""
    number, first = dependency_gates.left(connection, gate_id)
    if not number:
        _open(connection, gate_id)
        return
    few = dependency_gates.waiting(connection, gate_id, FEW + 1)
    if len(few) <= FEW:
        runs.change_many(connection, {run_id: {"detail": waits_for(first, number)} for run_id in few})


def _open(connection: Connection, gate_id: int) -> None:
    behind = dependency_gates.waiting(connection, gate_id)
    dependency_gates.open_for_all(connection, gate_id)
    for run in runs.get_many(connection, behind):
        if run.blocked and run.state == RunState.QUEUED:
            ahead = still_open(dependency_gates.obstacles(connection, run.id))
            runs.change(connection, run.id, detail=waits_for_all(ahead))


def leave_turn(connection: Connection, gate_id: int, run_id: int) -> None:
    """If a task of an array ends before its turn, the next task waits for what it waited for."""
    ahead = [
        row.parent_id for row in still_open(dependency_gates.obstacles(connection, run_id)) if row.kind == GateKind.TURN
    ]
    if ahead:
        dependency_gates.wait_for_too(connection, gate_id, max(ahead), GateKind.TURN)


def wait_again(connection: Connection, run_id: int) -> None:
    """Runs that depend on this one and still wait at a gate wait for it again."""
    for row in dependency_gates.passed(connection, run_id):
        dependency_gates.shut_again(connection, row.gate_id, row.child_id)


def waits_for(first: int, number: int) -> str:
    return f"waits for run {first}" + (f" and {number - 1} more" if number > 1 else "")


def waits_for_all(ahead: Sequence[AnyRow]) -> str | None:
    return waits_for(ahead[0].parent_id, len(ahead)) if ahead else None


def no_more(parent: int, state: str) -> str:
    return f"run {parent}, which it comes after, {'was cancelled' if state == RunState.CANCELLED else 'failed'}"


def still_open(obstacles: Sequence[AnyRow]) -> list[AnyRow]:
    return [row for row in obstacles if RunState(row.state) not in FINAL]


def hopeless(obstacles: Sequence[AnyRow]) -> AnyRow | None:
    """The first of these that had to succeed, but did not."""
    ended = (row for row in obstacles if row.kind == GateKind.OK and RunState(row.state) in FINAL)
    return next(ended, None)
