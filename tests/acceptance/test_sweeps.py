"""Sweeps, as a person works with them: repetitions, failures, what is missing, and how parameters arrive."""

from __future__ import annotations

import csv
import io
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.witness import until
from tests.labs.yard import Yard

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

TRAIN = """\
import os, pathlib, sys
from runyard import job
lr, width, place = float(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
index, run, attempt = (os.environ["RUNYARD_" + name] for name in ("INDEX", "RUN_ID", "ATTEMPT"))
(place / "started" / f"{index}.{run}.{attempt}").touch()
if (place / "failing" / index).exists():
    sys.exit(3)
job.log(step=1, loss=9.0)
job.log(step=2, loss=lr * width + int(os.environ["RUNYARD_SEED"]) % 100 / 1000)
"""
FAILING = (2, 7, 19, 20, 36)


class Lab:
    """A place with a program to train, and what of it has been started."""

    def __init__(self, yard: Yard, place: Path) -> None:
        self.yard, self.place = yard, place
        (place / "started").mkdir()
        (place / "failing").mkdir()
        (place / "train.py").write_text(TRAIN)

    def sweep(self, *words: str, name: str = "twelve") -> dict[str, Any]:
        command = [sys.executable, "train.py", "{lr}", "{width}", str(self.place)]
        return self.document("sweep", *words, "--name", name, "--minimize", "loss", "--", *command)

    def document(self, *words: str) -> Any:
        at = words.index("--") if "--" in words else len(words)
        done = self.yard.cli(*words[:at], "--json", *words[at:], cwd=self.place, timeout=300)
        assert done.returncode in (0, 204), done.stderr
        return json.loads(done.stdout)

    def cli(self, *words: str) -> str:
        done = self.yard.cli(*words, cwd=self.place)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def started(self) -> list[str]:
        return sorted(path.name for path in (self.place / "started").iterdir())

    def ended(self, sweep: int) -> dict[str, Any]:
        return dict(self.document("sweep", "watch", f"S{sweep}"))


@pytest.fixture
def lab(yard: Yard, tmp_path: Path) -> Lab:
    return Lab(yard, tmp_path)


@pytest.fixture
def either_lab(either: Callable[..., Yard], tmp_path: Path) -> Lab:
    return Lab(either(cpus=2), tmp_path)


SPACE = ("--param", "lr=0.1,0.2,0.3,0.4", "--param", "width=1,2,3")


def test_repetitions_failures_and_what_is_missing(either_lab: Lab) -> None:
    """12 configurations × 3 with 5 failures; these are retried, and two more repetitions added, and nothing else."""
    lab = either_lab
    for index in FAILING:
        (lab.place / "failing" / str(index)).touch()
    made = lab.sweep(*SPACE, "--reps", "3")
    assert (made["created"], made["reused"], made["retried"]) == (36, 0, 0)
    view = lab.ended(made["id"])
    assert (view["state"], view["runs"]["failed"], view["runs"]["succeeded"]) == ("failed", 5, 31)
    assert len(lab.started()) == 36
    label = f"S{made['id']}"
    check_table(lab, label, reps=3, failed=5)

    for index in FAILING:
        (lab.place / "failing" / str(index)).unlink()
    before = lab.started()
    assert lab.document("sweep", "retry", label, "--state", "failed")["retried"] == 5
    assert lab.ended(made["id"])["state"] == "succeeded"
    again = set(lab.started()) - set(before)
    assert sorted(int(name.split(".")[0]) for name in again) == list(FAILING)
    check_table(lab, label, reps=3)

    assert lab.sweep(*SPACE, "--reps", "3")["reused"] == 36
    assert len(lab.started()) == 41, "handed in again, it runs nothing"

    more = lab.sweep(*SPACE, "--reps", "5")
    assert (more["id"], more["created"], more["reused"], more["retried"]) == (made["id"], 24, 36, 0)
    assert lab.ended(made["id"])["state"] == "succeeded"
    assert len(lab.started()) == 65
    check_table(lab, label, reps=5)

    wider = lab.sweep("--param", "lr=0.1,0.2,0.3,0.4,0.5", "--param", "width=1,2,3", "--reps", "5")
    assert (wider["id"], wider["created"], wider["reused"]) == (made["id"], 15, 60)
    lab.ended(made["id"])
    assert len(lab.started()) == 80

    fresh = lab.sweep(*SPACE, "--reps", "1", "--fresh")
    assert fresh["id"] != made["id"]
    assert fresh["created"] == 12


def check_table(lab: Lab, label: str, reps: int, failed: int = 0) -> None:
    """The table says what the runs reported, and is the same in all its forms."""
    trials = lab.document("sweep", "table", label)
    assert len(trials) == 12
    assert sum(trial["n"] for trial in trials) == 12 * reps - failed
    assert [trial["value"] for trial in trials] == sorted(trial["value"] for trial in trials), "the best first"
    runs = lab.document("sweep", "table", label, "--runs")
    assert len({(run["trial"], run["rep"]) for run in runs}) == len(runs) == 12 * reps
    assert len({run["seed"] for run in runs}) == len(runs), "each has a seed of its own"
    for trial in trials:
        values = [run["value"] for run in runs if run["trial"] == trial["trial"] and run["state"] == "succeeded"]
        expected = [trial["lr"] * trial["width"] + run["seed"] % 100 / 1000 for run in runs
                    if run["trial"] == trial["trial"] and run["state"] == "succeeded"]  # fmt: skip
        assert sorted(values) == pytest.approx(sorted(expected))
        assert trial["value"] == pytest.approx(statistics.fmean(values))
        if trial["n"] > 1:
            assert trial["low"] <= trial["value"] <= trial["high"]
        else:
            assert (trial["low"], trial["high"]) == (None, None)
    shown = lab.cli("sweep", "table", label)
    assert shown.splitlines()[0].split() == ["TRIAL", "lr", "width", "loss", "N", "STATE", "RUNS"]
    assert shown.count(" ± ") == sum(trial["n"] > 1 for trial in trials)
    read = list(csv.DictReader(io.StringIO(lab.cli("sweep", "table", label, "--csv"))))
    assert [float(row["value"]) for row in read] == [trial["value"] for trial in trials]


def test_the_best_and_its_outputs(lab: Lab) -> None:
    made = lab.sweep(*SPACE, "--reps", "2", "--wait")
    label = f"S{made['id']}"
    best = lab.document("best", label)
    assert (best[0]["lr"], best[0]["width"]) == (0.1, 1)
    assert lab.document("sweep", "best", label) == best
    of_runs = lab.document("best", label, "last", "--metric", "loss", "--maximize")
    assert (of_runs[0]["lr"], of_runs[0]["width"]) == (0.4, 3)
    peaks = lab.document("best", label, "--metric", "loss", "--maximize", "--at", "best")
    assert peaks[0]["value"] == 9.0, "the largest value on the way, and not the last one"
    ids = [int(word) for word in lab.cli("best", label, "--quiet").split()]
    assert [run.sweep["trial"] for run in map(lab.yard.client().run, ids)] == [best[0]["trial"]] * 2


SHOW = """\
import json, os, sys
print(json.dumps([sys.argv[1:], {name: text for name, text in os.environ.items() if name.startswith("PARAM_")}]))
"""


@pytest.mark.parametrize(
    ("way", "words", "variables"),
    [
        ("flags", ["x", "--model.depth", "2", "--fast"], {}),
        ("hydra", ["x", "model.depth=2", "fast=true"], {}),
        ("json", ["x", '{"kind": "x", "model": {"depth": 2}, "fast": true}'], {}),
        ("env", ["x"], {"PARAM_KIND": "x", "PARAM_MODEL_DEPTH": "2", "PARAM_FAST": "true"}),
    ],
)
def test_parameters_arrive_as_the_program_reads_them(
    yard: Yard, way: str, words: list[str], variables: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "show.py").write_text(SHOW)
    sweep = yard.client().sweep(
        [sys.executable, "show.py", "{kind}"], space={"kind": ["x", "y"], "model": {"depth": [2]}, "fast": [True]},
        params_as=way, cwd=str(tmp_path),
    )  # fmt: skip
    first = sweep.wait().runs()[0]
    assert sweep.state == "succeeded", first.logs()
    assert json.loads(first.logs()) == [words, variables]


def test_a_sweep_can_be_cancelled_and_goes_on_where_it_was(either_lab: Lab) -> None:
    lab = either_lab
    (lab.place / "train.py").write_text(
        "import sys, time\nprint('up', flush=True)\ntime.sleep(600 * int(sys.argv[2]))\n"
    )
    made = lab.sweep("--param", "lr=1,2,3", "--param", "width=0,1", "--parallel", "2")
    client = lab.yard.client()
    sweep = client.find_sweep(made["id"])
    until(lambda: sweep.refresh().data["runs"]["succeeded"] >= 1, what="one of them has ended")
    view = lab.document("sweep", "cancel", sweep.label)
    assert view["state"] == "cancelled"
    assert all(run.final for run in sweep.runs())
    done = sum(run.state == "succeeded" for run in sweep.runs())
    (lab.place / "train.py").write_text("")
    again = lab.sweep("--param", "lr=1,2,3", "--param", "width=0,1", "--parallel", "2")
    assert again["id"] == sweep.id
    assert again["reused"] == done
    assert sweep.wait().state == "succeeded"


def test_all_commands_that_take_runs_take_a_sweep(lab: Lab) -> None:
    made = lab.sweep("--param", "lr=1,2", "--param", "width=1", "--wait")
    label = f"S{made['id']}"
    assert len(lab.document("show", label)) == 2
    assert len(lab.document("wait", label)) == 2
    assert [sweep["id"] for sweep in lab.document("sweep", "list")] == [made["id"]]
    assert lab.cli("sweep", "list", "--quiet").split() == [label]


def test_an_objective_that_is_never_reported_is_told(lab: Lab) -> None:
    command = ["--param", "x=1,2", "--name", "silent", "--minimize", "loss", "--wait", "--", "true"]
    view = lab.document("sweep", *command)
    assert "loss" in view["detail"]
    assert view["best"] is None
    done = lab.yard.cli("best", f"S{view['id']}")
    assert "has reported loss" in done.stderr


def test_the_index_style_example(yard: Yard) -> None:
    done = yard.cli("sweep", "-f", "sweep.yaml", "--wait", "--json", cwd=EXAMPLES / "array-index", timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    sweep = yard.client().find_sweep(json.loads(done.stdout)["id"])
    logs = [run.logs() for run in sweep.runs()]
    assert [log.partition(":")[0] for log in logs] == [f"configuration {number}" for number in range(1, 9)]
    best = sweep.best()
    assert best is not None and best.value is not None


def test_the_file_of_the_digits_example(yard: Yard) -> None:
    yard.env["PATH"] = f"{Path(sys.executable).parent}:{yard.env['PATH']}"
    done = yard.cli("sweep", "-f", "sweep.yaml", "--wait", "--json", cwd=EXAMPLES / "digits", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    view = json.loads(done.stdout)
    assert view["runs"]["succeeded"] == 12
    assert view["best"]["n"] == 2
    assert view["best"]["value"] < 1.0
