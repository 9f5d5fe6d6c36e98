"""The search by Gaussian processes, in a yard that has what it needs.

PyTorch is too big for everybody's environment, so the yard of this test finds it in that of the examples, behind its
own packages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.labs import components
from tests.labs.yard import Yard

PROGRAM = (
    f"import sys; sys.path.append({str(components.TRAINER_PACKAGES)!r}); from runyard.cli.main import main; main()"
)
TRAIN = """\
import math, sys
from runyard import job
lr, depth = float(sys.argv[1]), int(sys.argv[2])
job.log(step=1, loss=(math.log10(lr) + 2.3) ** 2 + 0.1 * (depth - 5) ** 2)
"""
LOWEST, HIGHEST, DEEPEST = 1e-5, 1.0, 8
BY_CHANCE = 10  # trials with which optuna's search by Gaussian processes begins
TRIALS = 18


@pytest.fixture
def yard() -> Iterator[Yard]:
    made = Yard(cpus=2)
    try:
        yield made.start("-c", PROGRAM)
    finally:
        made.remove()


@pytest.mark.long
@pytest.mark.component("scipy, torch")
def test_it_finds_better_than_it_began_with_and_its_choices_can_be_made_again(yard: Yard) -> None:
    client = yard.client()
    command = [sys.executable, "-c", TRAIN, "{lr}", "{depth}"]
    space = {"lr": {"from": LOWEST, "to": HIGHEST, "log": True}, "depth": {"from": 1, "to": DEEPEST}}
    search = {"method": "gp", "trials": TRIALS, "parallel": 1, "seed": 1, "minimize": "loss"}
    sweep = client.sweep(command, space=space, code=False, **search)
    assert sweep.wait(600).state == "succeeded", (sweep.data, yard.log)
    trials = sweep.trials()
    assert len({(trial.params["lr"], trial.params["depth"]) for trial in trials}) == TRIALS
    assert all(LOWEST <= trial.params["lr"] <= HIGHEST for trial in trials)
    assert {trial.params["depth"] for trial in trials} <= set(range(1, DEEPEST + 1))
    losses = [trial.value for trial in trials if trial.value is not None]
    print("\n".join(f"{trial.number:2d} {trial.params} {trial.value}" for trial in trials))
    assert min(losses[BY_CHANCE:]) < min(losses[:BY_CHANCE])
    yard.stop()
    yard.start("-c", PROGRAM)
    assert client.call("GET", f"/sweeps/{sweep.id}/replay") == {"decisions": TRIALS, "different": []}
