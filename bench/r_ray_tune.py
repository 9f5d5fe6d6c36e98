"""(r) 200 trials of an objective that takes 50 ms, random search, two at a time: a sweep against Ray Tune.

Both are up before the clock starts, and both record every trial. The time is from the call to the moment when all
results are there; the memory is the most that all their processes had together, shared pages counted once.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench import harness
from bench.harness import Result
from tests.labs import components
from tests.labs.yard import Yard

TRIALS, SLOTS, REPETITIONS = 200, 2, 3
SECONDS = 0.05
LOOK_S = 0.25
OBJECTIVE = (
    "import time; from runyard import job; p = job.params(); time.sleep(p['seconds']); "
    "job.log(step=1, loss=(p['x'] - 0.3) ** 2 + p['y'])"
)


@dataclass(frozen=True, kw_only=True)
class Taken:
    seconds: float
    megabytes: float


def measure(place: Path) -> Iterator[Result]:
    if harness.lacks("r", "ray"):
        return
    with harness.yard(place, cpus=SLOTS) as yard:
        pairs = [(by_runyard(yard), by_ray()) for _ in range(REPETITIONS)]
    for name, what, unit in (("seconds", "time", "s"), ("megabytes", "most memory of all processes", "MB")):
        ours, theirs = (statistics.median(getattr(pair[side], name) for pair in pairs) for side in (0, 1))
        yield Result(
            letter="r",
            what=f"{TRIALS} trials of {SECONDS * 1000:.0f} ms, {SLOTS} at a time: {what}",
            value=ours,
            against="Ray Tune",
            alternative=theirs,
            unit=unit,
            target="less than 1",
            met=ours < theirs,
        )


def by_runyard(yard: Yard) -> Taken:
    client = yard.client()
    with memory(yard.processes) as most:
        began = time.perf_counter()
        sweep = client.sweep(
            [sys.executable, "-c", OBJECTIVE], space={"x": "0.0..1.0", "y": "0.0..1.0"}, params={"seconds": SECONDS},
            method="random", trials=TRIALS, parallel=SLOTS, minimize="loss", fresh=True, cwd="/", code=None,
        )  # fmt: skip
        sweep.wait()
        took = time.perf_counter() - began
    done = sum(trial.value is not None for trial in sweep.trials())
    return Taken(seconds=_checked(took, done), megabytes=max(most))


def by_ray() -> Taken:
    directory = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # its sockets' paths must be short
    words = [str(components.RAY_PYTHON), "-m", "bench.ray_tune_side", str(TRIALS), str(SLOTS), str(SECONDS), directory]
    root = Path(__file__).parents[1]
    with subprocess.Popen(words, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            _line(process.stdout, "ready")
            with memory(lambda: _tree(process.pid)) as most:
                print(file=process.stdin, flush=True)
                told = json.loads(_line(process.stdout, "{"))
            print(file=process.stdin, flush=True)
            process.wait(120)
        finally:
            process.kill()
            shutil.rmtree(directory, ignore_errors=True)
    return Taken(seconds=_checked(told["seconds"], told["trials"]), megabytes=max(most))


def _checked(took: float, done: int) -> float:
    if done != TRIALS:
        raise SystemExit(f"only {done} of {TRIALS} trials gave a result")
    return took


def _line(stream: Iterator[str], begin: str) -> str:
    for line in stream:
        if line.startswith(begin):
            return line
    raise SystemExit("Ray Tune ended without a word")


def _tree(pid: int) -> list[int]:
    parent = psutil.Process(pid)
    return [pid, *(child.pid for child in parent.children(recursive=True))]


@contextmanager
def memory(processes: Callable[[], list[int]]) -> Iterator[list[float]]:
    """Megabytes of all of them together, looked at again and again while the context is open."""
    seen, over = [_together(processes())], threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_S):
            seen.append(_together(processes()))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()


def _together(pids: list[int]) -> float:
    return sum(map(_share, pids)) / 1e6


def _share(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_full_info().pss)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0
