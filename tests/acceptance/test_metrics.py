"""What runs report arrives, all of it and once, whatever is killed in between."""

from __future__ import annotations

import sys
from collections.abc import Callable

from runyard.client import Run
from tests.labs.waiting import until
from tests.labs.yard import Yard

PATIENCE_S = 120
STEPS, RUNS = 4000, 4
REPORTER = """
import json, os, sys, time
with open(os.environ["RUNYARD_METRICS"], "ab", buffering=0) as file:
    for step in range(int(sys.argv[1])):
        values = {"loss": 1 / (step + 1), "nan": float("nan")}
        file.write(json.dumps({"t": time.time(), "step": step, "m": values}).encode() + b"\\n")
        time.sleep(0.002)
"""
INTERRUPTED = """
import json, os, sys
checkpoint = os.path.join(os.environ["CHECKPOINT_DIR"], "step")
start = int(open(checkpoint).read()) if os.path.exists(checkpoint) else 0
attempt = int(os.environ["RUNYARD_ATTEMPT"])
for step in range(start, 300):
    if step % 50 == 0:
        open(checkpoint, "w").write(str(step))
    with open(os.environ["RUNYARD_METRICS"], "a") as file:
        file.write(json.dumps({"t": 0, "step": step, "m": {"attempt": attempt}}) + "\\n")
    if step == 120 * attempt:
        sys.exit(1)
"""


def count(run: Run) -> int:
    return min((metric["count"] for metric in run.reported()), default=0)


def test_a_yard_that_is_killed_loses_and_doubles_nothing(either: Callable[..., Yard]) -> None:
    yard = either(cpus=RUNS)
    command = [sys.executable, "-c", REPORTER, str(STEPS)]
    runs = [yard.client().submit(command) for _ in range(RUNS)]
    for share in (0.1, 0.4, 0.7):
        until(lambda: count(runs[0]) > share * STEPS, f"{share:.0%} is there", timeout_s=PATIENCE_S)  # noqa: B023
        yard.kill9()
        yard.start()
        runs = [yard.client().run(run.id) for run in runs]
    for run in runs:
        assert run.wait().state == "succeeded", run.logs()
        until(lambda: count(run) >= STEPS, "all of it is there", timeout_s=PATIENCE_S)  # noqa: B023
    for run in runs:
        counts = {metric["name"]: (metric["count"], metric["last_step"]) for metric in run.reported()}
        assert counts == {"loss": (STEPS, STEPS - 1), "nan": (STEPS, STEPS - 1)}
        assert list(run.metrics()["step"]) == list(range(STEPS))


def test_a_run_that_goes_on_from_a_checkpoint_has_each_step_once(make_yard: Callable[..., Yard]) -> None:
    yard = make_yard(cpus=1)
    run = yard.client().submit([sys.executable, "-c", INTERRUPTED], retry={"max": 5, "on": ["error"]}).wait()
    assert (run.state, run.attempt) == ("succeeded", 3), run.logs()
    until(lambda: count(run) == 300, "all of it is there", timeout_s=PATIENCE_S)
    frame = run.metrics()
    assert list(frame["step"]) == list(range(300))
    assert list(frame["attempt"].value_counts(sort=False).items()) == [(1.0, 100), (2.0, 100), (3.0, 100)]
