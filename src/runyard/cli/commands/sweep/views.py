"""Sentences and figures about sweeps."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from runyard.cli.show import formats
from runyard.client import Sweep, Trial
from runyard.model import exit_codes
from runyard.model.sweep.objective import Objective
from runyard.model.template import flat

BAR = 30  # columns of a progress bar
RUN_STATES = ("queued", "starting", "running", "succeeded", "early_stop", "failed", "cancelled")


def submitted(sweep: Sweep) -> str:
    """`submitted sweep S1: 36 runs`; for a known sweep, what was added."""
    told = sweep.submitted
    if not told["reused"] and not told["retried"]:
        return f"submitted sweep {sweep.label}: {formats.count(told['created'], 'run')}"
    return known(sweep.label, told)


def known(label: str, change: Mapping[str, Any]) -> str:
    """What submitting a known sweep again does, and whether its existing runs still match."""
    parts = [f"{change['created']} new", f"{change['retried']} retried", f"{change['reused']} reused"]
    if change["differs"]:
        other = " and ".join(change["differs"])
        parts.append(f"its runs used other {other} than now; --fresh runs all of it again")
    return f"sweep {label} exists: {', '.join(parts)}"


def sentence(sweep: Sweep) -> str:
    """`sweep S1 succeeded: 12 of 12 configurations; 36 runs: 36 succeeded; best is trial 3: …`."""
    parts = [f"sweep {sweep.label} {sweep.state}: {progress(sweep.data)}", counts(sweep.data["runs"])]
    more = (best_sentence(sweep.data), saved_sentence(sweep.data), formats.detail(sweep.data))
    return "; ".join([*parts, *(text for text in more if text)])


def best_sentence(view: Mapping[str, Any]) -> str:
    return f"best is {best(view)}" if view["best"] else ""


def best(view: Mapping[str, Any]) -> str:
    """`trial 3 with val/loss 0.21 ± 0.02: lr=0.1 width=64`; empty if none has a value yet."""
    if not view["best"]:
        return ""
    trial, metric = Trial.from_json(view["best"]), formats.one_line(view["objective"]["metric"])
    return f"trial {trial.number} with {metric} {interval(trial)}: {formats.parameters(flat(trial.params))}"


def objective(view: Mapping[str, Any]) -> Objective | None:
    return Objective.parse(view["objective"]) if view["objective"] else None


def progress(sweep: Mapping[str, Any]) -> str:
    return f"{done(sweep)} configuration{'s' if sweep['trials']['made'] != 1 else ''}"


def done(sweep: Mapping[str, Any]) -> str:
    """`3 of 12`."""
    trials = sweep["trials"]
    return f"{trials['ended']} of {trials['planned'] or trials['made']}"


def counts(runs: Mapping[str, int]) -> str:
    """`3 queued, 2 running, 5 succeeded, 2 stopped early`."""
    named = [(runs.get(state, 0), "stopped early" if state == "early_stop" else state) for state in RUN_STATES]
    return ", ".join(f"{number} {state}" for number, state in named if number) or "no runs"


def bar(sweep: Mapping[str, Any], width: int = BAR) -> str:
    trials = sweep["trials"]
    total = max(trials["planned"] or trials["made"], 1)
    done = int(min(trials["ended"] * width // total, width))
    return "█" * done + "░" * (width - done)


def saved_sentence(view: Mapping[str, Any]) -> str:
    return f"early stopping saved {saved(view['steps'])}" if saved(view["steps"]) else ""


def saved(steps: Mapping[str, float] | None) -> str:
    """The share of steps saved, compared with every run being as long as the longest."""
    if not steps or steps["full"] <= steps["done"]:
        return ""
    share = 1 - steps["done"] / steps["full"]
    return f"{share:.0%} of the steps ({steps['done']:,.0f} of {steps['full']:,.0f} done)"


def value(trial: Trial) -> str:
    """Its mean; for a running or stopped trial without one, its last value: `0.4123 at step 3`."""
    if trial.value is not None or trial.reached is None:
        return interval(trial)
    reached, step = trial.reached
    return f"{figure(reached)} at step {formats.number(step)}"


def interval(trial: Trial) -> str:
    """`0.213 ± 0.021`: the mean, and half of its 95 % interval, with as many digits as that leaves."""
    if trial.value is None:
        return "-"
    if trial.low is None or trial.high is None:
        return figure(trial.value)
    half = (trial.high - trial.low) / 2
    return f"{figure(trial.value, half)} ± {figure(half, half)}"


def figure(value: float, error: float = 0.0) -> str:
    """Four digits, or up to the second one of the error."""
    if not math.isfinite(value) or not math.isfinite(error) or error <= 0:
        return f"{value:.4g}"
    digits = 1 - math.floor(math.log10(error))
    return f"{value:.{digits}f}" if 0 <= digits <= 8 else f"{value:.4g}"


def exit_code(sweep: Sweep) -> int:
    return exit_codes.wait_code(sweep.state, None, None)


def ranked(trials: Sequence[Trial], wanted: Objective | None) -> list[Trial]:
    """Best first; then trials without a result, by their last step; trials that reported nothing last."""
    return list(trials) if wanted is None else sorted(trials, key=functools.partial(_rank, wanted))


def _rank(wanted: Objective, trial: Trial) -> tuple[float, ...]:
    if trial.value is not None:
        return 0, 0, wanted.order(trial.value), trial.number
    if trial.reached is None:
        return 1, math.inf, 0, trial.number
    reached, step = trial.reached
    return 1, -step, wanted.order(reached), trial.number
