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

from tests.labs.yard import Yard

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TRAIN = EXAMPLES / "digits" / "train.py"


def train(place: Path, *words: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(TRAIN), *words], cwd=place, env={**os.environ, **env}, stdout=subprocess.PIPE, text=True
    )


def result(place: Path) -> dict[str, Any]:
    return dict(json.loads((place / "output" / "result.json").read_text()))


def test_training_learns(tmp_path: Path) -> None:
    said, _ = train(tmp_path, "--epochs", "5").communicate(timeout=60)
    losses = [float(number) for number in re.findall(r"loss ([\d.]+)", said)]
    assert len(losses) == 5
    assert losses[-1] < losses[0]
    assert result(tmp_path)["accuracy"] > 0.8
    assert (tmp_path / "output" / "model.npz").stat().st_size > 0


def test_killed_training_resumes_as_if_nothing_had_happened(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    train(whole, "--epochs", "40").communicate(timeout=60)
    victim = train(killed, "--epochs", "40")
    assert victim.stdout is not None
    for line in victim.stdout:
        if line.startswith("epoch   3"):
            break
    victim.send_signal(signal.SIGKILL)
    victim.communicate(timeout=10)
    said, _ = train(killed, "--epochs", "40", RUNYARD_RESUME="1").communicate(timeout=60)
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
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_demo(demo_home: Yard) -> None:
    said = run_demo(demo_home)
    assert said.count("succeeded") == 8
    best = re.search(r"The best is run (\d+): .* accuracy ([\d.]+)%\. Its outputs: (.+)", said)
    assert best is not None
    assert float(best[2]) > 80
    assert {path.name for path in Path(best[3]).iterdir()} == {"result.json", "model.npz"}
    assert demo_home.url in said
    assert "Starting" not in run_demo(demo_home), "a second demo uses the yard of the first"
    assert demo_home.client().health()["runs"]["succeeded"] == 16


@pytest.mark.component("tmux")
def test_the_demo_draws_a_table_on_a_terminal(demo_home: Yard, tmp_path: Path) -> None:
    socket, done = str(tmp_path / "tmux"), tmp_path / "done"
    command = f"{sys.executable} {EXAMPLES / 'demo.py'}; echo $? > {done}; sleep 60"
    tmux = ["tmux", "-S", socket]
    subprocess.run(
        [*tmux, "-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "50", command], env=demo_home.env, check=True
    )
    try:
        screens = []
        while not done.exists():
            screens.append(
                subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True, check=True).stdout
            )
            time.sleep(0.3)
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
    assert done.read_text().strip() == "0"
    assert any("running" in screen and "queued" in screen for screen in screens), "the table was seen filling"
    assert any(re.search(r"succeeded.*accuracy", screen) for screen in screens)
