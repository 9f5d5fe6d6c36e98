"""Making all decisions of a sweep again from its log, and comparing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from runyard.model.sweep import SweepSpec
from runyard.yard.sweeps import rungs, search
from runyard.yard.sweeps.log import Decision, History, Kind

Ask = Callable[[History, int], Decision]


def replay(sweep_id: int, sweep: SweepSpec, decisions: Sequence[tuple[int, Decision]]) -> dict[str, Any]:
    """How many were made again, and those that came out otherwise. What runs reported (tell, rung) is what the others
    follow from, and is taken as it stands."""
    history, different, made = History(), list[dict[str, Any]](), 0
    ask = search.Search(sweep).ask if sweep.method.learns else None
    for index, (number, decision) in enumerate(decisions):
        computed = _again(sweep_id, sweep, ask, history, decision)
        if decision.kind in (Kind.ASK, Kind.RUNG):
            made += 1
        following = [later for _, later in decisions[index + 1 : index + 2]]
        for recorded, other in _differences(decision, computed, following):
            different.append({"number": number, "kind": decision.kind, "recorded": recorded, "computed": other})
        history.add(decision)
    return {"decisions": made, "different": different}


def _again(
    sweep_id: int, sweep: SweepSpec, ask: Ask | None, history: History, decision: Decision
) -> Decision | None:  # fmt: skip
    """What the history before it makes of a question: the answer, or the stop that follows from a rung."""
    if decision.kind is Kind.ASK and ask is not None:
        return ask(history, decision.trial)
    if decision.kind is not Kind.RUNG or sweep.stopping is None or sweep.objective is None:
        return None
    return rungs.judge(sweep_id, sweep.stopping, sweep.objective, history.with_tail([decision]), decision)


def _differences(
    decision: Decision, computed: Decision | None, following: Iterable[Decision]
) -> list[tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]]:
    if decision.kind is Kind.ASK and computed is not None:
        recorded = dict(decision.body)
        return [] if _plain(computed.body) == recorded else [(recorded, computed.body)]
    if decision.kind is not Kind.RUNG:
        return []
    stop = next((later for later in following if later.kind is Kind.STOP and later.trial == decision.trial), None)
    was, is_now = stop.body if stop else None, _plain(computed.body) if computed else None
    return [] if was == is_now else [(was, is_now)]


def _plain(body: Mapping[str, Any]) -> Any:
    """As it is after it was stored."""
    return json.loads(json.dumps(body))
