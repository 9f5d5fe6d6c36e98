"""Three minutes of work under a limit of one: one run, several attempts, one log. In real minutes, on real clusters."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.acceptance.cluster_yard import ClusterYard

STEPS = 180
WORKS = f"""
import os, signal, sys, time
place = os.path.join(os.environ["CHECKPOINT_DIR"], "step")
step = int(open(place).read()) if os.environ.get("RUNYARD_RESUME") else 0
asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
while step < {STEPS}:
    time.sleep(1)
    step += 1
    print("step", step, flush=True)
    if asked:
        open(place, "w").write(str(step))
        sys.exit(0)
"""


@pytest.mark.long
@pytest.mark.parametrize("kind", ["slurm", "gridengine"])
def test_a_run_longer_than_its_limit(cluster_yard: Callable[..., ClusterYard], kind: str) -> None:
    yard = cluster_yard(kind)
    run = yard.submit("--time", "1m", "--checkpoint", "--", "/usr/bin/python3", "-c", WORKS)
    shown = yard.ended(run, 900)
    assert (shown["state"], shown["exit_code"]) == ("succeeded", 0), shown
    assert shown["attempt"] == len(shown["attempts"]) >= 3
    *continued, last = shown["attempts"]
    assert {attempt["reason"] for attempt in continued} == {"timeout"}
    assert all("its time limit of 60 seconds" in attempt["detail"] for attempt in continued), shown
    assert len({attempt["native_id"] for attempt in shown["attempts"]}) == shown["attempt"], "each has a job of its own"
    lines = yard.log(run).splitlines()
    assert [line for line in lines if line.startswith("step")] == [f"step {n}" for n in range(1, STEPS + 1)]
    assert [line for line in lines if line.startswith("---")] == [
        f"--- attempt {number} ---" for number in range(2, last["number"] + 1)
    ]
