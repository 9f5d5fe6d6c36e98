"""Every way in which a run ends, made to happen on both real schedulers: told in words and numbers, within a minute.

What only one of them knows is in test_slurm_endings.py and test_gridengine_endings.py. The same endings, where cron
does the work, are in test_cron_endings.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.acceptance import endings
from tests.acceptance.cluster_yard import ClusterYard
from tests.acceptance.witness import until
from tests.labs.gridengine import GridEngineLab
from tests.labs.slurm import SlurmLab


@pytest.fixture(params=["slurm", "gridengine"])
def yard(request: pytest.FixtureRequest, cluster_yard: Callable[..., ClusterYard]) -> ClusterYard:
    """Slurm with accounts here; test_slurm_endings.py does without them."""
    return cluster_yard(request.param, **({"accounting": True} if request.param == "slurm" else {}))


@pytest.mark.parametrize("name", endings.BOTH)
def test_an_ending(yard: ClusterYard, name: str) -> None:
    shown = endings.check(yard, endings.BOTH[name](yard))
    assert name not in ("success", "an exit code") or shown["node"] in yard.lab.nodes, shown


@pytest.mark.parametrize("kill9", [False, True])
def test_a_scheduler_that_restarts_disturbs_no_run(yard: ClusterYard, kill9: bool) -> None:
    gate = endings.Gate(yard)
    run = yard.submit("--", "sh", "-c", f"echo before; {gate.wait}; echo after; exit 4")
    native = yard.started(run)
    if isinstance(yard.lab, SlurmLab):
        yard.lab.until_saved(native)
        yard.lab.restart_controller(kill9=kill9)
    elif isinstance(yard.lab, GridEngineLab):
        yard.lab.restart_qmaster(kill9=kill9)
    gate.open()
    shown = yard.told(run, lambda: endings.is_over(yard)(native))
    found = (shown["state"], shown["reason"], shown["exit_code"], shown["attempt"])
    assert found == ("failed", "error", 4, 1), shown
    assert yard.log(run) == "before\nafter\n"


def test_why_it_waits_and_until_when(yard: ClusterYard) -> None:
    """All cpus are taken for ten minutes."""
    nodes = yard.lab.nodes
    full = [yard.submit("--cpus", "4", "--time", "10m", "--", "sleep", "600") for _ in nodes]
    for run in full:
        yard.started(run)
    run = yard.submit("--cpus", "4", "--time", "10m", "--", "true")
    slurm = r"pending in Slurm: (Resources|Priority), expected \d\d:\d\d"
    engine = r"pending in Grid Engine: .*dropped because it is full"
    wanted = slurm if isinstance(yard.lab, SlurmLab) else engine
    until(lambda: re.match(wanted, yard.show(run)["detail"] or ""), timeout=240, what=f"detail like {wanted}")
    page = " ".join(yard.cli("show", str(run)).stdout.split())
    assert re.search(wanted, page), page
    assert yard.cli("cancel", *map(str, [*full, run])).returncode == 0
