"""A search with early stopping survives a yard that is killed: no trial is lost, none is made twice, and its log gives
the same decisions again."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.acceptance.witness import until
from tests.labs.yard import Yard

TRIALS, STEPS = 24, 9
OBJECTIVE = """
import json, math, os, sys, time
lr, starts = float(sys.argv[1]), sys.argv[2]
with open(starts, "a") as file:
    file.write(os.environ["RUNYARD_RUN_ID"] + "\\n")
for step in range(1, %d + 1):
    loss = (math.log10(lr) + 3) ** 2 + 1 / step
    with open(os.environ["RUNYARD_METRICS"], "a") as file:
        file.write(json.dumps({"t": time.time(), "step": step, "m": {"val/loss": loss}}) + "\\n")
    time.sleep(0.5)  # long enough for a stop to come before the last step, also on a busy machine
"""


def _document(program: Path, starts: Path) -> dict[str, object]:
    return {
        "command": [sys.executable, "-S", str(program), "{lr}", str(starts)],
        "space": {"lr": "log:1e-6..1", "flavour": ["a", "b"]},
        "method": "tpe", "trials": TRIALS, "parallel": 6, "minimize": "val/loss", "stop": "asha", "cwd": "/",
    }  # fmt: skip


def _ended(yard: Yard, number: int) -> int:
    return int(yard.client().find_sweep(number).data["trials"]["ended"])


def test_kill_9_three_times_in_the_middle_of_a_search(either: Callable[..., Yard], tmp_path: Path) -> None:
    yard = either(cpus=4)
    program, starts = tmp_path / "objective.py", tmp_path / "starts"
    program.write_text(OBJECTIVE % STEPS)
    sweep = yard.client().sweep(**_document(program, starts)).id
    for few in (4, 9, 14):
        until(lambda least=few: _ended(yard, sweep) >= least, timeout=300, what=f"{few} trials ended")  # type: ignore[misc]
        yard.kill9()
        yard.start()
    done = yard.client().find_sweep(sweep).wait(timeout=600)
    trials = done.trials()
    assert done.state == "succeeded", done.data
    assert [trial.number for trial in trials] == list(range(1, TRIALS + 1))
    runs = [run for trial in trials for run in trial.runs]
    assert len({run["id"] for run in runs}) == TRIALS
    assert {(run["state"], run["reason"]) for run in runs} == {("succeeded", None), ("cancelled", "early_stop")}
    begun = Counter(map(int, starts.read_text().split()))
    assert set(begun.values()) == {1}
    assert begun.keys() <= {run["id"] for run in runs}  # one may be stopped before it begins
    _check_log(yard, sweep)


def _check_log(yard: Yard, sweep: int) -> None:
    client = yard.client()
    decisions = list(client.find_sweep(sweep).decisions())
    assert [decision["number"] for decision in decisions] == list(range(1, len(decisions) + 1))
    for kind in ("ask", "tell"):
        assert sorted(each["trial"] for each in decisions if each["kind"] == kind) == list(range(1, TRIALS + 1))
    stopped = [each["trial"] for each in decisions if each["kind"] == "stop"]
    assert 0 < len(stopped) == len(set(stopped))
    replayed = client.call("GET", f"/sweeps/{sweep}/replay")
    assert replayed["different"] == []
    assert replayed["decisions"] >= TRIALS
    printed = yard.cli("sweep", "replay", f"S{sweep}")
    assert printed.returncode == 0, printed.stderr
    assert "none different" in printed.stdout
