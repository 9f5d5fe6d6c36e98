"""What a real scheduler announces reaches the run, and the yard tells what became of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.cluster_yard import ClusterYard
from tests.acceptance.witness import until

SAVES = """
import os, signal, sys, time
place = os.path.join(os.environ["CHECKPOINT_DIR"], "saved")
if os.environ.get("RUNYARD_RESUME"):
    sys.exit("nothing to go on from" if not os.path.exists(place) else 0)
def save(*_):
    print("saves", flush=True)
    open(place, "w").close()
    sys.exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGUSR1, save)
print("ready", flush=True)
time.sleep(600)
"""


# Who is warned has time to save, also on a busy machine.
PATIENT = {"slurm": {"kill_wait_s": 60}, "gridengine": {"notify_s": 60}}


@pytest.fixture(params=list(PATIENT))
def yard(request: pytest.FixtureRequest) -> Iterator[ClusterYard]:
    made = ClusterYard(request.getfixturevalue(f"{request.param}_lab")(**PATIENT[request.param]), request.param)
    made.start()
    made.add_site()
    yield made
    made.stop()


def begin(yard: ClusterYard) -> tuple[int, str]:
    """The run and its native id. It has no time limit, so that nobody but the scheduler warns it."""
    run = yard.submit("--checkpoint", "--", "/usr/bin/python3", "-c", SAVES)
    native = yard.started(run)
    until(lambda: yard.log(run) == "ready\n", what="the run is ready")
    return run, native


def test_a_run_goes_on_after_the_schedulers_warning(yard: ClusterYard) -> None:
    run, native = begin(yard)
    if yard.lab.kind == "slurm":
        yard.lab.ask("scancel", "--batch", "--signal=USR1", native)
    else:
        yard.lab.admin("qmod", "-sj", native)  # announced by the same signal as the end of its time
    shown = yard.ended(run)
    assert (shown["state"], shown["attempt"]) == ("succeeded", 2), shown
    assert shown["attempts"][0]["reason"] == "timeout"
    assert "SIGUSR1" in shown["attempts"][0]["detail"]
    assert yard.log(run) == "ready\nsaves\n\n--- attempt 2 ---\n"


def test_a_run_saves_before_somebody_elses_cancel_ends_it(yard: ClusterYard) -> None:
    run, native = begin(yard)
    yard.lab.ask("scancel" if yard.lab.kind == "slurm" else "qdel", native)
    shown = yard.ended(run)
    assert (shown["state"], shown["reason"], shown["attempt"]) == ("cancelled", "external", 1), shown
    assert yard.log(run) == "ready\nsaves\n"
