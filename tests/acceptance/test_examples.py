"""The examples do what they say."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from tests.labs.components import TRAINER_PYTHON
from tests.labs.yard import Yard

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TRAIN = EXAMPLES / "digits" / "train.py"
PATIENCE_S = 180


def train(place: Path, *words: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(TRAIN), *words], cwd=place, env={**os.environ, **env}, stdout=subprocess.PIPE, text=True
    )


def result(place: Path) -> dict[str, Any]:
    return dict(json.loads((place / "output" / "result.json").read_text()))


def test_training_learns(tmp_path: Path) -> None:
    said, _ = train(tmp_path, "--epochs", "5").communicate(timeout=PATIENCE_S)
    losses = [float(number) for number in re.findall(r"loss ([\d.]+)", said)]
    assert len(losses) == 5
    assert losses[-1] < losses[0]
    assert result(tmp_path)["accuracy"] > 0.8
    assert (tmp_path / "output" / "model.npz").stat().st_size > 0


def test_killed_training_resumes_as_if_nothing_had_happened(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    train(whole, "--epochs", "40").communicate(timeout=PATIENCE_S)
    victim = train(killed, "--epochs", "40", "--pause", "1")  # not over before anybody has read of its third epoch
    assert victim.stdout is not None
    for line in victim.stdout:
        if line.startswith("epoch   3"):
            break
    victim.send_signal(signal.SIGKILL)
    victim.communicate(timeout=PATIENCE_S)
    said, _ = train(killed, "--epochs", "40", RUNYARD_RESUME="1").communicate(timeout=PATIENCE_S)
    assert re.match(r"resuming after epoch [3-9]|resuming after epoch [1-3]\d", said)
    assert result(killed) == result(whole)


def test_the_run_file_runs(yard: Yard, tmp_path: Path) -> None:
    yard.env["PATH"] = f"{Path(sys.executable).parent}:{yard.env['PATH']}"
    done = yard.cli("submit", "-f", str(EXAMPLES / "run.yaml"), "--follow", cwd=TRAIN.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "accuracy" in done.stdout
    run = yard.client().last()
    assert {output.path for output in run.outputs()} == {"result.json", "model.npz"}
    assert run.params == {"lr": 0.1, "model": {"width": 32}}


def test_a_run_that_is_killed_resumes(yard: Yard) -> None:
    place = EXAMPLES / "retry_and_resume"
    done = yard.cli("submit", "-f", "run.yaml", "--follow", cwd=place)
    assert done.returncode == 0, done.stdout + done.stderr
    run = yard.client().last()
    assert [attempt["outcome"] for attempt in run.attempts] == ["failed", "succeeded"]
    assert "attempt 1 begins after step 0" in run.logs()
    assert "attempt 2 begins after step 4" in run.logs()
    assert "the sum is 55" in run.logs()


@pytest.fixture
def demo_home() -> Iterator[Yard]:
    home = Yard()
    yield home
    home.remove()


def run_demo(home: Yard) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py")],
        env=home.env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_demo(demo_home: Yard) -> None:
    said = run_demo(demo_home)
    assert said.count(" succeeded ") == 4, said
    best = re.search(r"The best is trial \d+: .*, loss ([\d.]+) ± [\d.]+\.\nThe outputs of its first run: (.+)", said)
    assert best is not None, said
    assert float(best[1]) < 1
    assert {path.name for path in Path(best[2]).iterdir()} == {"result.json", "model.npz"}
    assert demo_home.url in said
    assert "Starting" not in run_demo(demo_home), "a second demo uses the yard of the first"
    assert demo_home.client().health()["runs"]["succeeded"] == 16


@pytest.mark.component("tmux")
def test_the_demo_draws_a_table_on_a_terminal(demo_home: Yard, tmp_path: Path) -> None:
    socket, done = str(tmp_path / "tmux"), tmp_path / "done"
    command = f"{sys.executable} {EXAMPLES / 'demo.py'}; echo $? > {done}; sleep 600"
    tmux = ["tmux", "-S", socket]
    subprocess.run(
        [*tmux, "-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "50", command], env=demo_home.env, check=True
    )
    try:
        screens = []
        while not (done.exists() and done.read_text()):
            screens.append(
                subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True, check=True).stdout
            )
            time.sleep(0.3)
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
    assert done.read_text().strip() == "0"
    assert any("running" in screen and "queued" in screen for screen in screens), "the table was seen filling"
    assert any(re.search(r"succeeded.* ± ", screen) for screen in screens)


@pytest.mark.component("trainer")
def test_what_the_logger_of_keras_writes_becomes_metrics(yard: Yard) -> None:
    yard.env["PATH"] = f"{TRAINER_PYTHON.parent}:{yard.env['PATH']}"
    done = yard.cli("submit", "-f", "run.yaml", "--follow", cwd=EXAMPLES / "keras-logger", timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    run = yard.client().last()
    assert {output.path for output in run.outputs()} == {"training.csv", "model.keras"}
    found = {metric["name"]: metric for metric in yard.client().call("GET", f"/runs/{run.id}/metrics")["metrics"]}
    assert {"loss", "accuracy", "val_loss", "val_accuracy"} <= set(found)
    assert (found["val_loss"]["count"], found["val_loss"]["last_step"]) == (8, 7)
    assert found["val_loss"]["last"] < found["val_loss"]["first"]


def test_a_python_function_is_handed_in(yard: Yard) -> None:
    place = EXAMPLES / "python-function"
    done = subprocess.run(
        [sys.executable, "hand_in.py"],
        cwd=place,
        env=yard.env,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"The best is run 1: lr 0\.5$", done.stdout.strip()), done.stdout
    runs = yard.client().runs(project="python-function")
    assert sorted(run.params["lr"] for run in runs) == [0.01, 0.1, 0.5]
    assert all(run.logs(file="metrics.jsonl").count('"loss"') == 301 for run in runs), "each step, and the summary"


def test_every_example_is_listed() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    there = {path.name for path in EXAMPLES.iterdir()} - {"README.md", "__pycache__"}
    listed = {link.partition("/")[0] for link in re.findall(r"\]\(([^)]+)\)", page)}
    assert there <= listed


MLP = EXAMPLES / "mlp-mnist"
CURVES = {f"{part}_{what}" for part in ("train", "valid") for what in ("error", "accuracy")}  # of run.npz


def layout(place: Path) -> set[str]:
    """What is below the folder with the date, as one path for each kind of file."""
    [run] = place.iterdir()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d", run.name)
    names = {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()}
    return {re.sub(r"tfevents\..*", "tfevents", name) for name in names}


LEFT = {
    "run.npz", "train-summaries/events.out.tfevents", "valid-summaries/events.out.tfevents", "checkpoints/checkpoint",
    *(f"checkpoints/model.ckpt-{step}.npz" for step in (20, 40, 60, 80, 100)),
}  # fmt: skip


def test_a_script_with_a_layout_of_its_own(tmp_path: Path) -> None:
    """What it writes for TensorBoard is what TensorBoard reads, checks and all."""
    env = {**os.environ, "MLP_DATA_DIR": str(tmp_path / "data"), "OUTPUT_DIR": str(tmp_path / "experiments")}
    subprocess.run([sys.executable, MLP / "make_data.py", tmp_path / "data"], check=True, timeout=PATIENCE_S)
    done = subprocess.run(
        [sys.executable, MLP / "train_mnist.py"], env=env, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^Epoch \d\d: err\(train\)=[\d.]+ acc\(train\)=[\d.]+$", done.stdout, re.MULTILINE)) == 5
    assert layout(tmp_path / "experiments") == LEFT
    [events] = tmp_path.glob("experiments/*/valid-summaries/*")
    read = [(event.step, value.tag) for event in EventFileLoader(str(events)).Load() for value in event.summary.value]
    assert read == [(step, tag) for step in (20, 40, 60, 80, 100) for tag in ("error", "accuracy")]


def test_its_walk_through_with_qsub(yard: Yard, tmp_path: Path) -> None:
    """As the page of its cluster says: a folder for experiments, the script by itself, its variables with -v."""
    home, data = tmp_path / "home", tmp_path / "data"
    (home / "experiments" / "2017-02-10_12-30-00").mkdir(parents=True)
    (home / "experiments" / "2017-02-10_12-30-00" / "run.npz").write_bytes(b"of another day")
    yard.env["HOME"] = str(home)
    subprocess.run([sys.executable, MLP / "make_data.py", data], check=True, timeout=PATIENCE_S)
    variables = f"MLP_DATA_DIR={data},OUTPUT_DIR={home}/experiments"
    done = yard.cli("qsub", "-q", "cpu", "-S", sys.executable, "-v", variables, str(MLP / "train_mnist.py"), cwd=home)
    assert done.stdout == 'Your job 1 ("train_mnist.py") has been submitted\n', done.stderr
    assert yard.cli("wait", "1").returncode == 0, yard.cli("logs", "1").stdout
    assert (home / "train_mnist.py.o1").read_text().startswith("Epoch 01: err(train)=")

    assert "valid/accuracy" in yard.cli("metrics", "1").stdout
    found = {metric["name"]: metric for metric in yard.client().call("GET", "/runs/1/metrics")["metrics"]}
    assert CURVES | {f"{part}/{what}" for part in ("train", "valid") for what in ("error", "accuracy")} == set(found)
    assert (found["train/error"]["count"], found["train/error"]["last_step"]) == (100, 100)
    assert (found["valid/error"]["count"], found["valid_error"]["count"]) == (5, 5)
    assert found["valid/accuracy"]["last"] > 0.5

    outputs = {output.path.split("/", 1)[1] for output in yard.client().run(1).outputs()}
    assert {re.sub(r"tfevents\..*", "tfevents", path) for path in outputs} == LEFT, "and not what was there before"
    assert yard.cli("fetch", "1", "-o", str(tmp_path / "fetched")).returncode == 0
    assert layout(tmp_path / "fetched") == LEFT

    wrapper = (
        f"export MLP_DATA_DIR={data}\nexport OUTPUT_DIR=$HOME/experiments/two\n{sys.executable} {MLP}/train_mnist.py\n"
    )
    (home / "train.sh").write_text(wrapper)
    assert yard.cli("qsub", "train.sh", cwd=home).returncode == 0
    assert yard.cli("wait", "2").returncode == 0, yard.cli("logs", "2").stdout
    assert "valid/accuracy" in yard.cli("metrics", "2").stdout, "what a wrapper sets is followed too"
    assert {output.path.split("/", 1)[1] for output in yard.client().run(2).outputs()} >= {"run.npz"}


def test_its_file(yard: Yard) -> None:
    yard.env["PATH"] = f"{Path(sys.executable).parent}:{yard.env['PATH']}"
    done = yard.cli("submit", "-f", "run.yaml", "--follow", cwd=MLP)
    assert done.returncode == 0, done.stdout + done.stderr
    names = {metric["name"] for metric in yard.client().call("GET", "/runs/1/metrics")["metrics"]}
    assert CURVES | {"train/error", "valid/error"} <= names
