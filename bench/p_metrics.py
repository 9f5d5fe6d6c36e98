"""(p) Metrics of 20 runs at once: from the word to go until the yard has all of them summed up, against 20 processes
that write the same points into TensorBoard's event files with tensorboardX, which nobody reads. And what reporting one
point costs the job itself, against a line of JSON that it writes to a file, both within one run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import harness
from bench.harness import Result
from runyard import Client

RUNS, STEPS, REPETITIONS, CALLS = 20, 5000, 3, 20_000
RATE = 10_000  # points a second
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
CALLER = """
import json, statistics, sys, time
from runyard import job
def taken(work):
    begin = time.perf_counter()
    for step in range(int(sys.argv[2])):
        work(step)
    return (time.perf_counter() - begin) / int(sys.argv[2])
def ours(step):
    job.log(step=step, loss=1 / (step + 1))
def plain(step):
    file.write(json.dumps({"t": time.time(), "step": step, "m": {"loss": 1 / (step + 1)}}) + "\\n")
with open(sys.argv[1], "w", buffering=1) as file:  # a write for each line, as job.log has it
    pairs = [(taken(ours), taken(plain)) for _ in range(int(sys.argv[3]))]
print(json.dumps([statistics.median(side) for side in zip(*pairs)]))
"""


def measure(place: Path) -> Iterator[Result]:
    with harness.yard(place, cpus=RUNS) as yard:
        client = yard.client()
        seconds = harness.interleaved(
            REPETITIONS, {"ours": lambda: _runs(client, place), "theirs": lambda: _processes(place)}
        )
        call, line = _call(client, place)
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
    yield Result(
        letter="p",
        what=f"one point by `job.log`, per call: {call * RATE:.1%} of a job's time at {RATE:,} points/s",
        value=1e6 * call,
        against="a line of JSON into a file",
        alternative=1e6 * line,
        unit="µs",
    )


def _call(client: Client, place: Path) -> tuple[float, float]:
    """Seconds of a call of ours, and of a plain line."""
    command = [sys.executable, "-c", CALLER, str(place / "plain.jsonl"), str(CALLS), str(REPETITIONS)]
    run = client.submit(command=command, cwd="/").wait(PATIENCE_S)
    ours, plain = json.loads(run.logs())
    return ours, plain


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
