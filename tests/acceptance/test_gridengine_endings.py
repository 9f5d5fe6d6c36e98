"""Endings that only Grid Engine has, and those that need hosts which fail."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable

import pytest

from tests.acceptance.cluster_yard import ClusterYard
from tests.acceptance.witness import until
from tests.labs.gridengine import GridEngineLab

GetYard = Callable[..., ClusterYard]


@pytest.fixture
def yard(cluster_yard: GetYard) -> ClusterYard:
    return cluster_yard("gridengine")


@pytest.fixture
def fragile(cluster_yard: GetYard) -> ClusterYard:
    """Whose hosts are missed soon; others wait for five minutes."""
    return cluster_yard("gridengine", max_unheard_s=30)


def lab_of(yard: ClusterYard) -> GridEngineLab:
    assert isinstance(yard.lab, GridEngineLab)
    return yard.lab


def has_lost_sight(yard: ClusterYard, node: str) -> Callable[[], bool]:
    def known() -> bool:
        rows = [line.split() for line in yard.lab.ask("qstat", "-f").splitlines()]
        return any(row[0] == f"cpu@{node}" and "u" in row[-1] for row in rows if row)

    return known


def test_a_host_that_loses_its_power(fragile: ClusterYard) -> None:
    """Grid Engine only loses sight of it; the runner's silence is the second witness."""
    run = fragile.submit("--option", "queue=cpu@ge2", "--", "sleep", "600")
    fragile.started(run)
    fragile.lab.node_power_off("ge2")
    shown = fragile.told(run, has_lost_sight(fragile, "ge2"))
    assert (shown["state"], shown["reason"], shown["node"]) == ("failed", "node_lost", "ge2"), shown
    assert re.search(r"lost sight of its node ge2, and its runner was last heard \d+s ago", shown["detail"])


def test_a_host_that_loses_its_daemon_goes_on(fragile: ClusterYard) -> None:
    """Grid Engine loses sight of it as of one without power; but its runner beats."""
    run = fragile.submit("--option", "queue=cpu@ge1", "--", "sh", "-c", "sleep 60; exit 5")
    fragile.started(run)
    lab_of(fragile).kill_execd("ge1")
    until(has_lost_sight(fragile, "ge1"), timeout=60, what="Grid Engine has lost sight of ge1")
    shown = fragile.ended(run, 120)
    assert (shown["state"], shown["reason"], shown["exit_code"]) == ("failed", "error", 5), shown


def test_a_job_that_is_rescheduled_is_not_begun_twice(yard: ClusterYard) -> None:
    """By an operator, against what runyard asked for."""
    body = "echo attempt $RUNYARD_ATTEMPT; [ $RUNYARD_ATTEMPT = 2 ] || sleep 300"
    run = yard.submit("--retry", "1", "--", "sh", "-c", body)
    native = yard.started(run)
    lab_of(yard).admin("qmod", "-f", "-rj", native)
    lab_of(yard).wait_records(native)
    shown = yard.ended(run, 60)
    assert (shown["state"], shown["attempt"]) == ("succeeded", 2), shown
    first = shown["attempts"][0]
    assert first["reason"] == "preempted", first
    assert re.search(r"Grid Engine: failed 25: rescheduling.* \d+", first["detail"])
    assert yard.log(run) == "attempt 1\n\n--- attempt 2 ---\nattempt 2\n"


def test_a_job_that_vanished(yard: ClusterYard) -> None:
    """An operator had the qmaster forget it, whatever becomes of its processes."""
    witness = yard.home / "witness"
    run = yard.submit("--", "sh", "-c", f"while sleep 0.5; do echo x >> {witness}; done")
    native = yard.started(run)
    lab_of(yard).admin("qdel", "-f", native)
    shown = yard.told(run, lambda: not lab_of(yard).state(native))
    assert (shown["state"], shown["reason"]) == ("failed", "lost"), shown
    assert re.search(r"given up by its scheduler after \d+s|its runner was last heard \d+s ago", shown["detail"])
    size = witness.stat().st_size
    time.sleep(2)
    assert witness.stat().st_size == size, "nothing of it runs"


def test_a_job_in_error_is_told_with_the_reason_and_leaves_the_queue(yard: ClusterYard) -> None:
    run = yard.submit("--option", "h=", "--", "true")
    native = yard.queued(run)
    shutil.rmtree(yard.batch_directory(native))
    lab_of(yard).ask("qrls", native)
    shown = yard.told(run, lambda: "E" in lab_of(yard).state(native))
    assert (shown["state"], shown["reason"]) == ("failed", "launch"), shown
    assert re.search(r"Grid Engine could not start it: .*can't chdir to /", shown["detail"])
    until(lambda: not lab_of(yard).state(native), timeout=60, what="an empty queue")


def test_the_limit_of_time_that_grid_engine_enforces(yard: ClusterYard) -> None:
    """A runner that sleeps cannot end its run in time."""
    assert yard.cli("site", "edit", "cedar", "--option", "time_margin=5s").returncode == 0
    run = yard.submit("--time", "5s", "--", "sh", "-c", "kill -STOP $PPID; sleep 600")
    shown = yard.ended(run, 90)
    assert (shown["state"], shown["reason"]) == ("failed", "timeout"), shown
    assert re.search(r"Grid Engine: failed 37: .*after \d+s", shown["detail"])
