"""A search that learns and ends losers early finds better than chance with the same number of training steps.

The seeds are fixed beforehand. Both sweeps are of the digits example, in the same space, through the same code; steps
are counted from what the runs reported.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runyard.cli.input import spec_file
from runyard.client import Sweep
from tests.labs.yard import Yard

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
SEEDS = tuple(range(1, 11))
WINS = 8
SLOTS = 20  # more than cores: between two epochs of some milliseconds a run sleeps
ALONE = 1  # trial of a search at a time: then what it decides does not depend on how busy the machine is
PAUSE_S = "0.4"  # after each epoch: a stop comes before many more of them, also on a busy machine
LIMIT_S = 1800


@pytest.mark.long
def test_tpe_with_asha_is_better_than_chance_with_as_many_steps(make_yard: Callable[..., Yard]) -> None:
    yard = make_yard(cpus=SLOTS)
    client = yard.client()
    document = {**spec_file.read(str(DIGITS / "search.yaml")), "cwd": str(DIGITS), "parallel": ALONE}
    document["command"][0] = sys.executable
    document["command"][document["command"].index("--pause") + 1] = PAUSE_S
    searches = [client.sweep(**{**document, "name": f"search {seed}", "seed": seed}) for seed in SEEDS]
    steps = [used(search.wait(LIMIT_S)) for search in searches]
    chances = [client.sweep(**by_chance(document, seed, count)) for seed, count in zip(SEEDS, steps, strict=True)]
    rows = [compare(seed, *pair) for seed, *pair in zip(SEEDS, searches, chances, strict=True)]
    print("\n".join(["", "seed  tpe+asha  steps  saved    random  steps", *rows]))
    wins = sum(best(search) < best(chance) for search, chance in zip(searches, chances, strict=True))
    print(f"better in {wins} of {len(SEEDS)}")
    assert wins >= WINS
    assert all(search.data["runs"]["early_stop"] > 0 for search in searches), "losers are ended early"
    assert all(used(chance) >= used(search) for search, chance in zip(searches, chances, strict=True))


def by_chance(document: dict[str, Any], seed: int, steps: float) -> dict[str, Any]:
    """As many whole trainings as these steps are enough for, and one more where they are no whole number."""
    epochs = int(document["command"][document["command"].index("--epochs") + 1])
    plain = {name: item for name, item in document.items() if name not in ("stop", "parallel")}
    return {**plain, "name": f"chance {seed}", "seed": seed, "method": "random", "trials": math.ceil(steps / epochs)}


def compare(seed: int, search: Sweep, chance: Sweep) -> str:
    chance.wait(LIMIT_S)
    return (
        f"{seed:4d}  {best(search):8.4f}  {used(search):5.0f}  {saved(search):5.0%}  "
        f"{best(chance):8.4f}  {used(chance):5.0f}"
    )


def best(sweep: Sweep) -> float:
    found = sweep.best()
    assert found is not None and found.value is not None, sweep.refresh().data
    return found.value


def used(sweep: Sweep) -> float:
    """The steps of all its runs, as they reported them."""
    return float(sum(run["step"] or 0 for trial in sweep.trials() for run in trial.runs))


def saved(sweep: Sweep) -> float:
    whole = max(run["step"] or 0 for trial in sweep.trials() for run in trial.runs)
    return 1 - used(sweep) / (whole * len(sweep.trials()))
