"""(p) Metrics of 20 runs at once: from the word to go until the yard has all of them summed up, against 20 processes
that write the same points into TensorBoard's event files with tensorboardX, which nobody reads."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import harness
from bench.harness import Result
from runyard import Client

RUNS, STEPS, REPETITIONS = 20, 5000, 3
PATIENCE_S = 600
WAIT = """
import pathlib, sys, time
def wait(place):
    (place / f"ready-{sys.argv[2]}").touch()
    while not (place / "go").exists():
        time.sleep(0.005)
"""
REPORTER = f"""{WAIT}
from runyard import job
wait(pathlib.Path(sys.argv[1]))
for step in range(int(sys.argv[3])):
    job.log(step=step, **{{"loss": 1 / (step + 1), "val/acc": step / 1e6}})
"""
TENSORBOARD = f"""{WAIT}
from tensorboardX import SummaryWriter
place = pathlib.Path(sys.argv[1])
writer = SummaryWriter(str(place / f"events-{{sys.argv[2]}}"))
wait(place)
for step in range(int(sys.argv[3])):
    writer.add_scalar("loss", 1 / (step + 1), step)
    writer.add_scalar("val/acc", step / 1e6, step)
writer.close()
"""


def measure(place: Path) -> Iterator[Result]:
    with harness.yard(place, cpus=RUNS) as yard:
        client = yard.client()
        seconds = harness.interleaved(
            REPETITIONS, {"ours": lambda: _runs(client, place), "theirs": lambda: _processes(place)}
        )
    points = 2 * RUNS * STEPS
    yield Result(
        letter="p",
        what=f"{points:,} values of {RUNS} runs, until the yard has summed them up",
        value=points / seconds["ours"],
        against="tensorboardX, until they are written",
        alternative=points / seconds["theirs"],
        unit="values/s",
        target="not slower",
        met=seconds["ours"] <= seconds["theirs"],
    )


def _runs(client: Client, place: Path) -> float:
    room = _room(place)
    command = [sys.executable, "-c", REPORTER, str(room)]
    ids = [client.submit(command=[*command, str(number), str(STEPS)], cwd="/").id for number in range(RUNS)]
    seconds = _time(room, lambda: all(_count(client, run) == STEPS for run in ids))
    for run in ids:
        client.run(run).wait()
    return seconds


def _count(client: Client, run: int) -> int:
    counts: list[int] = [metric["count"] for metric in client.run(run).reported()]
    return min(counts, default=0)


def _processes(place: Path) -> float:
    room = _room(place)
    command = [sys.executable, "-c", TENSORBOARD, str(room)]
    started = [subprocess.Popen([*command, str(number), str(STEPS)]) for number in range(RUNS)]
    seconds = _time(room, lambda: all(process.poll() is not None for process in started))
    if any(process.returncode for process in started):
        raise SystemExit("tensorboardX failed")
    return seconds


def _room(place: Path) -> Path:
    room = place / f"metrics-{time.monotonic_ns()}"
    room.mkdir()
    return room


def _time(room: Path, is_done: Callable[[], bool]) -> float:
    """From the word to go: starting a Python takes the same on both sides."""
    _wait(lambda: len(list(room.glob("ready-*"))) == RUNS)
    begin = time.perf_counter()
    (room / "go").touch()
    _wait(is_done)
    return time.perf_counter() - begin


def _wait(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_done():
        if time.monotonic() > deadline:
            raise SystemExit("it does not end")
        time.sleep(0.05)
