"""Every way in which a run ends, made to happen on both real schedulers: told in words and numbers, within a minute.

What only one of them knows is in test_slurm_endings.py and test_gridengine_endings.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.acceptance.cluster_yard import ClusterYard
from tests.acceptance.witness import until
from tests.labs.gridengine import GridEngineLab
from tests.labs.slurm import SlurmLab

ALLOCATES = ["/usr/bin/python3", "-c", "import time; x = bytearray(300 << 20); time.sleep(60)"]


@pytest.fixture(params=["slurm", "gridengine"])
def yard(request: pytest.FixtureRequest, cluster_yard: Callable[..., ClusterYard]) -> ClusterYard:
    """Slurm with accounts here; test_slurm_endings.py does without them."""
    return cluster_yard(request.param, **({"accounting": True} if request.param == "slurm" else {}))


def is_over(yard: ClusterYard, native: str) -> Callable[[], bool]:
    """Whether the scheduler itself knows that the job has ended."""
    lab = yard.lab
    if isinstance(lab, SlurmLab):
        return lambda: lab.job(native).get("JobState") not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING")
    assert isinstance(lab, GridEngineLab)
    return lambda: not lab.state(native)


def ending(shown: dict[str, object]) -> tuple[object, object]:
    return shown["state"], shown["reason"]


def hold(yard: ClusterYard) -> list[str]:
    return ["--option", "hold=" if isinstance(yard.lab, SlurmLab) else "h="]


def release(yard: ClusterYard, native: str) -> None:
    yard.lab.ask(*(["scontrol", "release"] if isinstance(yard.lab, SlurmLab) else ["qrls"]), native)


def delete(yard: ClusterYard, native: str) -> None:
    yard.lab.ask("scancel" if isinstance(yard.lab, SlurmLab) else "qdel", native)


@pytest.mark.parametrize("code", [0, 3])
def test_an_exit(yard: ClusterYard, code: int) -> None:
    run = yard.submit("--", "sh", "-c", f"sleep 15; exit {code}")  # longer than the time between two looks at the queue
    shown = yard.told(run, is_over(yard, yard.started(run)))
    assert ending(shown) == (("failed", "error") if code else ("succeeded", None)), shown
    assert (shown["exit_code"], shown["detail"]) == (code, "exited with 3" if code else None)
    assert shown["node"] in yard.lab.nodes, shown


def test_too_much_memory(yard: ClusterYard) -> None:
    run = yard.submit("--memory", "60M", "--", *ALLOCATES)
    shown = yard.ended(run, 60)
    assert ending(shown) == ("failed", "oom"), shown
    assert re.search(r"used [\d.]+ MB of the 60.0 MB granted", shown["detail"])


def test_too_much_time(yard: ClusterYard) -> None:
    """Of a process that does not want to end."""
    run = yard.submit("--time", "20s", "--", "sh", "-c", "trap '' TERM; while :; do sleep 1; done")
    shown = yard.told(run, is_over(yard, yard.started(run)))
    assert ending(shown) == ("failed", "timeout"), shown
    assert "its time limit of 20 seconds" in shown["detail"]


def test_cancelled_by_runyard(yard: ClusterYard) -> None:
    run = yard.submit("--", "sleep", "300")
    native = yard.started(run)
    assert yard.cli("cancel", str(run)).returncode == 0
    shown = yard.told(run, is_over(yard, native))
    assert ending(shown) == ("cancelled", "user"), shown
    assert re.fullmatch(r"stopped after [\d.]+s", shown["detail"])


def test_cancelled_by_runyard_while_it_waits(yard: ClusterYard) -> None:
    run = yard.submit(*hold(yard), "--", "sleep", "300")
    native = yard.queued(run)
    assert yard.cli("cancel", str(run)).returncode == 0
    shown = yard.told(run, is_over(yard, native))
    assert ending(shown) == ("cancelled", "user"), shown
    assert shown["detail"] == "it was stopped before it began"


def test_cancelled_by_somebody_else(yard: ClusterYard) -> None:
    run = yard.submit("--", "sleep", "300")
    native = yard.started(run)
    delete(yard, native)
    shown = yard.told(run, is_over(yard, native))
    assert ending(shown) == ("cancelled", "external"), shown
    assert re.search(r"(Slurm: CANCELLED|exit status 137).*(after|ran for) [\d.]+s", shown["detail"])


def test_cancelled_by_somebody_else_while_it_waits(yard: ClusterYard) -> None:
    run = yard.submit(*hold(yard), "--", "sleep", "300")
    native = yard.queued(run)
    delete(yard, native)
    shown = yard.told(run, is_over(yard, native))
    assert ending(shown) == ("cancelled", "external"), shown
    assert re.search("Slurm: CANCELLED|deleted from Grid Engine's queue before it began", shown["detail"])


def test_a_node_without_the_interpreter(yard: ClusterYard) -> None:
    python = yard.home / "python"
    python.symlink_to("/usr/bin/python3")
    assert yard.cli("site", "edit", "cedar", "--python", str(python)).returncode == 0
    try:
        run = yard.submit(*hold(yard), "--", "true")
        native = yard.queued(run)
        assert yard.cli("site", "edit", "cedar", "--python", "/usr/bin/python3").returncode == 0
        python.unlink()
        release(yard, native)
        shown = yard.told(run, is_over(yard, native))
    finally:
        yard.cli("site", "edit", "cedar", "--python", "/usr/bin/python3")
    assert ending(shown) == ("failed", "launch"), shown
    assert f"has no interpreter {python}; name one with: runyard site edit --python PATH" in shown["detail"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--", "/no/such/program"], "no such program: /no/such/program"),
        (["--cwd", "/no/such/place", "--", "true"], "no such working directory: /no/such/place"),
    ],
)
def test_a_command_that_cannot_be_launched(yard: ClusterYard, words: list[str], told: str) -> None:
    shown = yard.ended(yard.submit(*words), 60)
    assert (*ending(shown), shown["detail"]) == ("failed", "launch", told), shown


def test_a_runner_that_is_killed(yard: ClusterYard) -> None:
    """Nobody is left to say why: what the scheduler knows is all there is. Slurm tells a cancel from a script that
    died; the accounts of Grid Engine have the same words for this as for a qdel, and so it is taken for one."""
    run = yard.submit("--", "sh", "-c", "kill -9 $PPID; sleep 300")
    until(lambda: yard.show(run)["attempts"], what="the attempt")
    shown = yard.ended(run, 90)
    state, reason, told = {
        "slurm": ("failed", "lost", r"Slurm: FAILED, .*\d"),
        "gridengine": ("cancelled", "external", r"Grid Engine: failed 100: .*exit status 137"),
    }[yard.lab.kind]
    assert ending(shown) == (state, reason), shown
    assert re.match(told, shown["detail"]), shown


@pytest.mark.parametrize("kill9", [False, True])
def test_a_scheduler_that_restarts_disturbs_no_run(yard: ClusterYard, kill9: bool) -> None:
    run = yard.submit("--", "sh", "-c", "echo before; sleep 20; echo after; exit 4")
    native = yard.started(run)
    if isinstance(yard.lab, SlurmLab):
        yard.lab.until_saved(native)
        yard.lab.restart_controller(kill9=kill9)
    elif isinstance(yard.lab, GridEngineLab):
        yard.lab.restart_qmaster(kill9=kill9)
    shown = yard.told(run, is_over(yard, native))
    assert (*ending(shown), shown["exit_code"], shown["attempt"]) == ("failed", "error", 4, 1), shown
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
    until(lambda: re.match(wanted, yard.show(run)["detail"] or ""), timeout=90, what=f"detail like {wanted}")
    page = " ".join(yard.cli("show", str(run)).stdout.split())
    assert re.search(wanted, page), page
    assert yard.cli("cancel", *map(str, [*full, run])).returncode == 0
