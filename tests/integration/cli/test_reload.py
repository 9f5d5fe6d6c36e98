"""`runyard up --reload`, with a copy of the source that may be changed."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import runyard
from runyard.client import find_yard
from tests.labs import waiting
from tests.labs.yard import Yard

PATIENCE_S = 90


class Reloading:
    def __init__(self, home: Yard, source: Path) -> None:
        self.home, self.source = home, source
        shutil.copytree(Path(runyard.__file__).parent, source / "runyard", ignore=shutil.ignore_patterns("__pycache__"))
        home.env["PYTHONPATH"] = str(source)
        with (home.home / "up.log").open("ab") as log:
            self.process = subprocess.Popen(home.command("up", "--reload"), env=home.env, stdout=log, stderr=log)

    def pid_after(self, pid: int = 0) -> int:
        """That of the yard which answers, when it is another one."""

        def answering() -> int | None:
            address = find_yard.running(self.home.home)
            done = self.home.cli("status") if address and address.pid != pid else None
            return address.pid if address and done and done.returncode == 0 else None

        return waiting.until(answering, f"another yard than {pid}", timeout_s=PATIENCE_S) or 0

    def write(self, module: str, text: str) -> None:
        (self.source / "runyard" / module).write_text(text)


@pytest.fixture
def reloading(tmp_path: Path) -> Iterator[Reloading]:
    made = Reloading(Yard(cpus=1), tmp_path / "source")
    yield made
    made.process.kill()
    made.process.wait(90)
    made.home.remove()


def test_a_change_starts_the_yard_anew_and_runs_go_on(reloading: Reloading) -> None:
    first = reloading.pid_after()
    assert reloading.home.cli("submit", "--", "sleep", "600").returncode == 0
    waiting.until(lambda: _state(reloading) == "running", "the run running", timeout_s=PATIENCE_S)
    reloading.write("machine_of_tomorrow.py", "NEW = True\n")
    second = reloading.pid_after(first)
    (reloading.home.home / "config.toml").write_text('log_level = "debug"\n')
    reloading.pid_after(second)
    run = reloading.home.client().run(1)
    assert (run.state, run.attempt) == ("running", 1)
    assert "machine_of_tomorrow.py changed" in reloading.home.log


def test_a_yard_that_cannot_start_waits_for_the_next_change(reloading: Reloading) -> None:
    first = reloading.pid_after()
    config = reloading.home.home / "config.toml"
    config.write_text("prot = 1\n")
    waiting.until(lambda: "'prot' is not known" in reloading.home.log, "the mistake told", timeout_s=PATIENCE_S)
    config.write_text("")
    reloading.pid_after(first)


def test_it_stops_with_its_yard(reloading: Reloading) -> None:
    pid = reloading.pid_after()
    reloading.process.send_signal(signal.SIGINT)
    assert reloading.process.wait(60) == 0
    assert not find_yard.is_alive(pid)


def test_it_is_not_for_the_background(tmp_path: Path) -> None:
    done = Yard(below=tmp_path).cli("up", "--reload", "--detach")
    assert done.returncode == 2
    assert "give one of them" in done.stderr


def _state(reloading: Reloading) -> str:
    return reloading.home.client().run(1).state
