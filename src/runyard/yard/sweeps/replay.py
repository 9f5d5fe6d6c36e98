"""Compute all decisions of a sweep again from its log, and compare."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from runyard.model.sweep import SweepSpec
from runyard.yard.sweeps import rungs, search
from runyard.yard.sweeps.decision_log import Decision, DecisionKind, History

Ask = Callable[[History, int], Decision]


def replay(sweep_id: int, sweep: SweepSpec, decisions: Sequence[tuple[int, Decision]]) -> dict[str, Any]:
    """The number of decisions, and those that differ. Reports of runs (tell, rung) are the input of the others, and are
    taken from the log."""
    history, different, made = History(), list[dict[str, Any]](), 0
    ask = search.Search(sweep).ask if sweep.method.learns else None
    for index, (number, decision) in enumerate(decisions):
        computed = _again(sweep_id, sweep, ask, history, decision)
        if decision.kind in (DecisionKind.ASK, DecisionKind.RUNG):
            made += 1
        following = [later for _, later in decisions[index + 1 : index + 2]]
        for recorded, other in _differences(decision, computed, following):
            different.append({"number": number, "kind": decision.kind, "recorded": recorded, "computed": other})
        history.add(decision)
    return {"decisions": made, "different": different}


def _again(
    sweep_id: int, sweep: SweepSpec, ask: Ask | None, history: History, decision: Decision
) -> Decision | None:  # fmt: skip
    """The decision that follows from the history before it: an answer, or the stop after a rung."""
    if decision.kind is DecisionKind.ASK and ask is not None:
        return ask(history, decision.trial)
    if decision.kind is not DecisionKind.RUNG or sweep.stop is None or sweep.objective is None:
        return None
    return rungs.judge(sweep_id, sweep.stop, sweep.objective, history.with_tail([decision]), decision)


def _differences(
    decision: Decision, computed: Decision | None, following: Iterable[Decision]
) -> list[tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]]:
    if decision.kind is DecisionKind.ASK and computed is not None:
        recorded = dict(decision.body)
        return [] if _plain(computed.body) == recorded else [(recorded, computed.body)]
    if decision.kind is not DecisionKind.RUNG:
        return []
    stop = next(
        (later for later in following if later.kind is DecisionKind.STOP and later.trial == decision.trial), None
    )
    was, is_now = stop.body if stop else None, _plain(computed.body) if computed else None
    return [] if was == is_now else [(was, is_now)]


def _plain(body: Mapping[str, Any]) -> Any:
    """As it is read from the store."""
    return json.loads(json.dumps(body))
