"""Labs leave nothing behind, however their test run ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.labs.processes import processes_with
from tests.labs.waiting import until

pytestmark = pytest.mark.long

REPOSITORY = Path(__file__).resolve().parents[3]

SLURM = """
from tests.labs.slurm import Options, SlurmLab
lab = SlurmLab(Options(**SETTINGS)).__enter__()
for node in lab.nodes:
    lab.wait_job(lab.submit("-w", node, wrap="setsid sleep 600 & trap '' TERM; sleep 600"), "RUNNING")
"""
GRID_ENGINE = """
from tests.labs.gridengine import GridEngineLab
lab = GridEngineLab().__enter__()
lab.wait_state(lab.submit("-cwd", "-b", "y", "sleep", "600"), "r")
"""
TELL = """
import sys
print(lab.root, *([lab.network.uplink] if lab.network else []), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.component("slurm")
def test_a_killed_test_run_takes_its_slurm_along(how: int) -> None:
    _check_nothing_is_left(SLURM.replace("SETTINGS", "{}"), how)


@pytest.mark.component("slurm", "root", "cgroup v1")
def test_machines_and_control_groups_go_too() -> None:
    _check_nothing_is_left(SLURM.replace("SETTINGS", "dict(isolate=True, cgroup_memory=True)"), signal.SIGKILL)


@pytest.mark.component("gridengine", "root")
def test_a_killed_test_run_takes_its_gridengine_along() -> None:
    _check_nothing_is_left(GRID_ENGINE, signal.SIGKILL)


def _check_nothing_is_left(program: str, how: int) -> None:
    command = [sys.executable, "-c", program + TELL]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=REPOSITORY, text=True) as run:
        assert run.stdout
        root, *cables = run.stdout.readline().split()
        traces = [Path(root), *(Path("/sys/class/net", name) for name in cables), *_groups(run.pid)]
        assert processes_with(root)
        assert all(path.exists() for path in traces)
        run.send_signal(how)
    until(lambda: not processes_with(root), f"every process of {root} gone")
    until(lambda: not any(path.exists() for path in traces), f"{', '.join(map(str, traces))} gone")


def _groups(pid: int) -> list[Path]:
    return list(Path("/sys/fs/cgroup").glob(f"*/slurm_c{pid}x*"))
