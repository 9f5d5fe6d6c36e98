"""(o) A grid of 10,000 trials accepted in one call, against as many rows in one sqlite3 commit, and against optuna,
which is told of that many trials to come (in memory, and not durable)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from bench import c_submit, harness
from bench.harness import Result
from tests.labs.yard import Yard

SIDE = 100  # values of each of two parameters
AGAINST = {"sqlite3": "as many rows in one sqlite3 commit", "optuna": "optuna.enqueue_trial, in memory"}


def measure(place: Path) -> Iterator[Result]:
    with harness.yard(place, cpus=1) as yard:
        yard.client().submit(command=["sleep", "1000"], cwd="/", priority=1000)  # takes the slot
        sides = {
            "runyard": lambda: grid(yard),
            "sqlite3": lambda: c_submit.insert(place, SIDE * SIDE, together=True),
            "optuna": enqueue,
        }
        seconds = harness.interleaved(3, sides)
    for against, told in AGAINST.items():
        yield Result(
            letter="o",
            what=f"grid of {SIDE * SIDE:,} trials in one call, durable",
            value=seconds["runyard"],
            against=told,
            alternative=seconds[against],
            unit="s",
            target="under 5 s",
            met=seconds["runyard"] < 5,
        )


def grid(yard: Yard) -> float:
    values = list(range(SIDE))
    client = yard.client()
    begin = time.perf_counter()
    sweep = client.sweep(
        ["train", "--lr", "{lr}", "--width", "{width}"], cwd="/", space={"lr": values, "width": values}, fresh=True
    )
    taken = time.perf_counter() - begin
    if sweep.submitted["created"] != SIDE * SIDE:
        raise SystemExit(f"{sweep.submitted['created']} runs were made, and not {SIDE * SIDE}")
    return taken


def enqueue() -> float:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study()
    begin = time.perf_counter()
    for lr in range(SIDE):
        for width in range(SIDE):
            study.enqueue_trial({"lr": lr, "width": width})
    return time.perf_counter() - begin
