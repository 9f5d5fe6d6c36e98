"""What to do next with a run, as commands to type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runyard.model import units
from runyard.model.states import Reason, RunState

Advice = list[tuple[str, str]]


def next_steps(run: Mapping[str, Any]) -> Advice:
    """Commands with what each is for, the best first."""
    number, state = run["id"], run["state"]
    if run.get("cancel_requested"):
        return [(f"runyard wait {number}", "return when nothing of it runs any more")]
    if state == RunState.QUEUED:
        return [("runyard site list", "see what is free"), (f"runyard cancel {number}", "take it back")]
    if state in (RunState.STARTING, RunState.RUNNING):
        return [(f"runyard logs {number} -f", "follow it"), (f"runyard top {number}", "see what it uses")]
    if state == RunState.SUCCEEDED:
        return [(f"runyard fetch {number}", "bring its outputs here"), (f"runyard logs {number}", "read its log")]
    return _after_failure(run)


def _after_failure(run: Mapping[str, Any]) -> Advice:
    number, reason = run["id"], run.get("reason")
    again = (f"runyard retry {number}", "try it again as it is")
    log = (f"runyard logs {number} --tail 50", "read how it ended")
    if reason == Reason.OOM:
        return [(f"runyard submit --memory {_more_memory(run)} … -- COMMAND", "give it more memory"), log]
    if reason == Reason.TIMEOUT:
        return [(f"runyard submit --time {_more_time(run)} … -- COMMAND", "give it more time"), log]
    if reason == Reason.DEPENDENCY:
        return [(f"runyard show {parent}", "see why that one failed") for parent in run.get("after", ())] + [again]
    if reason in (Reason.LAUNCH, Reason.STAGING):
        return [(f"runyard events {number}", "see what happened"), again]
    return [log, again]


def _more_memory(run: Mapping[str, Any]) -> str:
    asked = (run.get("resources") or {}).get("memory") or run.get("peak_memory") or 1 << 30
    return f"{max(1, -(-2 * asked // (1 << 30)))}G" if 2 * asked >= 1 << 30 else f"{-(-2 * asked // (1 << 20))}M"


def _more_time(run: Mapping[str, Any]) -> str:
    asked = (run.get("resources") or {}).get("time") or 3600
    return units.show_duration(2 * asked) if asked >= 5 else f"{2 * asked}s"
