"""What programs do with runyard.job, on real sites: numbers arrive, wishes are heard, functions give results."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import runyard
from runyard import errors
from runyard.client import Client, Run
from tests.acceptance.cluster_yard import ClusterYard
from tests.acceptance.test_ssh_nodes import SITE, NodeYard
from tests.acceptance.witness import until
from tests.labs.accounts import NODE_PYTHON
from tests.labs.nodes import NodeLab
from tests.labs.yard import Yard

BARE = [sys.executable, "-S"]  # a Python without site-packages: no runyard is installed in it
REPORTS = """
import runyard
from runyard import job
for step in range(3):
    job.log(step=step, loss=1 / (step + 1), **{"val/acc": step})
job.summary(acc=0.9)
print(job.params(), job.seed(), job.index(), "packages" in runyard.__file__)
"""
REPORTED = [{"loss": 1.0, "val/acc": 0.0}, {"loss": 0.5, "val/acc": 1.0}, {"loss": 1 / 3, "val/acc": 2.0}]


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def logged(run: Run) -> list[dict[str, float]]:
    return [line["m"] for line in lines(run.logs(file="metrics.jsonl")) if "m" in line]


def test_numbers_arrive_at_the_yard_without_runyard_in_the_python(yard: Yard) -> None:
    program = REPORTS.replace("{", "{{").replace("}", "}}")
    run = yard.client().submit([*BARE, "-c", program], params={"lr": 0.1}, seed=7, index=3, wait=True)
    assert run.state == "succeeded", run.logs()
    assert run.logs() == "{'lr': 0.1} 7 3 True\n"
    assert logged(run) == REPORTED
    assert lines(run.logs(file="metrics.jsonl"))[-1]["summary"] == {"acc": 0.9}


def test_what_is_installed_or_the_users_own_comes_first(yard: Yard, tmp_path: Path) -> None:
    own = tmp_path / "runyard.py"
    own.write_text("name = 'mine'")
    program = "import runyard, os; print(runyard.__file__, os.environ['PYTHONPATH'].split(':')[0])"
    installed = yard.client().submit([sys.executable, "-c", program], wait=True)
    assert installed.logs().split()[0] == runyard.__file__
    users = yard.client().submit([*BARE, "-c", program], env={"PYTHONPATH": str(tmp_path)}, wait=True)
    assert users.logs() == f"{own} {tmp_path}\n"


STOPS = """
import time
from runyard import job
print("begun", flush=True)
while not job.should_stop():
    time.sleep(0.01)
job.log(step=1, last=1)
print("ended in order", flush=True)
"""


def begun(run: Run) -> Run:
    until(lambda: "begun" in run.logs(), what="its first line", timeout=120)
    return run


def test_a_cancelled_run_ends_in_order(yard: Yard) -> None:
    run = begun(yard.client().submit([*BARE, "-c", STOPS], stop={"grace": 60}))
    run.cancel()
    assert (run.state, run.reason) == ("cancelled", "user")
    assert run.logs() == "begun\nended in order\n"
    assert logged(run) == [{"last": 1.0}]


def test_every_process_of_a_cancelled_run_hears_it(yard: Yard) -> None:
    """The signal goes to the first one alone."""
    launcher = "import subprocess, signal, sys; signal.signal(signal.SIGUSR1, signal.SIG_IGN)\n"
    launcher += "sys.exit(subprocess.call([sys.executable, '-S', '-c', sys.argv[1]]))"
    command = [*BARE, "-c", launcher, STOPS]
    run = begun(yard.client().submit(command, stop={"signal": "USR1", "grace": 60}))
    run.cancel()
    assert run.logs() == "begun\nended in order\n"


SAVES = """
import time
from runyard import job
steps = 0
def save(directory):
    (directory / "steps").write_text(str(steps))
with job.checkpointing(save) as ckpt:
    if ckpt.resume_from is not None:
        steps = int((ckpt.resume_from / "steps").read_text())
        print("resumed", ckpt.resume_from == ckpt.directory, steps > 0, flush=True)
    while not (ckpt.resume_from and steps >= 100):
        steps += 1
        time.sleep(0.01)
        if job.should_stop():
            print("stops after", steps, flush=True)
            break
"""


def test_a_time_limit_saves_and_the_next_attempt_goes_on(yard: Yard) -> None:
    """Half a minute, so that there is time to begin and to save also where others keep the machine busy."""
    run = yard.client().submit([*BARE, "-c", SAVES], resources={"time": 32}, checkpoint={"grace": 8}, wait=True)
    assert run.state == "succeeded", run.logs()
    assert [attempt["reason"] for attempt in run.attempts] == ["timeout", None]
    assert "resumed True True" in run.logs()


def test_parameters_in_the_words_of_programs(yard: Yard) -> None:
    client, params = yard.client(), {"lr": 0.1, "model": {"depth": 2}, "fast": True}
    command = ["sh", "-c", 'echo "$@" $PARAM_MODEL_DEPTH', "{lr}"]
    ways = ("flags", "hydra", "json", "env")
    runs = {way: client.submit(command, params=params, params_as=way, wait=True) for way in ways}
    shown = {way: run.logs().strip() for way, run in runs.items()}
    assert shown == {
        "flags": "--model.depth 2 --fast",
        "hydra": "model.depth=2 fast=true",
        "json": json.dumps(params),
        "env": "2",
    }
    done = yard.cli("submit", "-q", "--wait", "-p", "lr=0.1", "--params-as", "flags", "--", "echo", "{index}")
    assert done.returncode == 0, done.stderr
    assert client.last().logs() == "1 --lr 0.1\n"
    assert "echo 1 --lr 0.1" in yard.cli("ls").stdout


TRAIN = """
from runyard import job
def train(lr, steps):
    for step in range(steps):
        job.log(step=step, loss=lr)
    if lr > 1:
        raise ValueError("it diverges")
    return {"lr": lr, "steps": steps, "index": job.index()}
"""


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module of the user's, with a function in it."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train_it.py").write_text(TRAIN)
    monkeypatch.syspath_prepend(str(tmp_path / "mine"))
    import train_it  # type: ignore[import-not-found]

    yield train_it.train
    del sys.modules["train_it"]


def test_functions_give_their_results(yard: Yard, train: Any) -> None:
    calls = yard.client().map(train, {"lr": [0.1, 0.01], "steps": [1, 2]}, tags=["mapped"])
    assert [call.result(120) for call in calls] == [
        {"lr": 0.1, "steps": 1, "index": 1}, {"lr": 0.01, "steps": 1, "index": 2},
        {"lr": 0.1, "steps": 2, "index": 3}, {"lr": 0.01, "steps": 2, "index": 4},
    ]  # fmt: skip
    assert [call.tags for call in calls] == [["mapped"]] * 4
    assert logged(calls[3]) == [{"loss": 0.01}] * 2
    assert lines(calls[3].logs(file="metrics.jsonl"))[-1]["summary"] == {"lr": 0.01, "steps": 2.0, "index": 4.0}


def test_a_function_that_fails_is_told(yard: Yard, train: Any) -> None:
    (call,) = yard.client().map(train, [{"lr": 2, "steps": 0}])
    with pytest.raises(errors.Conflict, match=f"run {call.id} failed: error"):
        call.result(120)
    assert "ValueError: it diverges" in call.logs()


def test_a_program_that_hands_itself_in_does_so_once(yard: Yard, tmp_path: Path) -> None:
    """Its runs import it; without the guard they would hand it in again, and so on for ever."""
    program = tmp_path / "unguarded.py"
    program.write_text(
        "from runyard import Client\ndef train(lr): return lr\n"
        "print([call.result(120) for call in Client().map(train, {'lr': [1]})])\n"
    )
    command = [sys.executable, str(program)]
    done = subprocess.run(command, env=yard.env, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode != 0
    assert [run.state for run in yard.client().runs()] == ["failed"]
    assert "map was called while a run imports" in yard.client().last().logs()


@pytest.mark.parametrize("kind", ["slurm", "gridengine"])
def test_on_a_cluster(cluster_yard: Callable[..., ClusterYard], kind: str) -> None:
    yard = cluster_yard(kind)
    run = yard.submit("--env", "PYTHONPATH=", "--", NODE_PYTHON, "-c", REPORTS)  # the lab's own path has a runyard
    shown = yard.ended(run, 240)
    assert (shown["state"], yard.log(run)) == ("succeeded", "{} None 1 True\n"), shown
    with Client(home=yard.home, start=False) as client:
        assert logged(client.run(run)) == REPORTED


def test_on_a_node_over_ssh(node_lab: Callable[..., NodeLab]) -> None:
    yard = Yard(local_site="named")
    try:
        boxes = NodeYard(node_lab(), yard)
        boxes.add_site()
        boxes.until_up(boxes.lab.names[0])
        run = yard.client().submit([NODE_PYTHON, "-c", REPORTS], site=SITE, cwd="/tmp")
        shown = boxes.ended(run)
        assert (shown["state"], boxes.log(run)) == ("succeeded", "{} None 1 True\n"), shown
        assert logged(run) == REPORTED
    finally:
        yard.remove()
