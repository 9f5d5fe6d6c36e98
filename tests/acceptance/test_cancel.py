"""When the state is `cancelled`, nothing of the run is alive."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.witness import Witness, until, with_argument
from tests.labs.yard import Yard

STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
depth = int(sys.argv[1])
if depth:
    if depth % 2:
        os.setsid() if os.getpid() != os.getsid(0) else None
    subprocess.Popen([sys.executable, "-c", open(sys.argv[2]).read(), str(depth - 1), *sys.argv[2:]], env={})
if depth == 1 and os.fork():
    os._exit(0)  # the deepest loses its parent
time.sleep(600)
"""


ANSWERS = """
import signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(print("saved")))
print("ready")
time.sleep(600)
"""


def test_a_tree_that_resists_is_gone(either: Callable[..., Yard], tmp_path: Path) -> None:
    yard = either(cpus=2)
    script = tmp_path / "stubborn.py"
    script.write_text(STUBBORN)
    mark = f"tree-{os.getpid()}"
    run = yard.client().submit(
        command=["python3", "-c", STUBBORN, "3", str(script), mark], stop={"signal": "TERM", "grace": 1}
    )
    until(lambda: len(with_argument(mark)) >= 4, what="the whole tree")
    answer = yard.cli("cancel", str(run.id))
    assert answer.returncode == 0, answer.stderr
    run.refresh()
    assert (run.state, run.reason) == ("cancelled", "user")
    assert with_argument(mark) == []


def test_the_stop_signal_can_be_answered(yard: Yard) -> None:
    run = yard.client().submit(command=["python3", "-uc", ANSWERS], stop={"signal": "USR1", "grace": 60})
    until(lambda: run.logs() == "ready\n", what="the run is ready")
    run.cancel()
    assert (run.refresh().state, run.logs()) == ("cancelled", "ready\nsaved\n")


@pytest.mark.parametrize("attempt", range(3))
def test_cancel_while_it_is_starting(yard: Yard, tmp_path: Path, attempt: int) -> None:
    witness, mark = Witness(tmp_path), f"60{attempt}.{os.getpid()}"
    ids = [run.id for run in yard.client().submit_many([{"command": witness.command(f"sleep {mark}")}] * 30)]
    yard.client().cancel(ids)
    states = {run_id: yard.client().run(run_id).wait(timeout=180).state for run_id in ids}
    assert set(states.values()) == {"cancelled"}
    assert max(witness.count("start").values(), default=0) <= 1
    assert with_argument(mark) == []


def test_a_cancel_survives_the_yard(either: Callable[..., Yard]) -> None:
    yard = either(cpus=2)
    mark = f"32{os.getpid()}.5"
    run = yard.client().submit(
        command=["/bin/sh", "-c", f"trap '' TERM; sleep {mark}; sleep {mark}"], stop={"grace": 3}
    )
    until(lambda: with_argument(f"sleep\0{mark}"), what="the run")
    assert yard.cli("cancel", "--no-wait", str(run.id)).returncode == 0
    yard.kill9()
    yard.start()
    ended = yard.client().run(run.id).wait(timeout=180)
    assert ended.state == "cancelled"
    assert with_argument(mark) == []
