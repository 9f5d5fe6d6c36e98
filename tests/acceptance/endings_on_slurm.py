"""Ways in which a run ends that only Slurm has, or tells in words of its own; see endings.py."""

from __future__ import annotations

import shutil

from tests.acceptance.cluster_yard import OnCluster
from tests.acceptance.endings import Ending, Known, Table, begin_nowhere, called, held, shell, slurm
from tests.labs.accounts import NODE_PYTHON

SLURM: Table = {}


def is_in(yard: OnCluster, *states: str) -> Known:
    return lambda native: slurm(yard).job(native).get("JobState") in states


@called("a node without power", SLURM)
def node_without_power(yard: OnCluster) -> Ending:
    return Ending(
        spec={"command": ["sleep", "600"], "node": ["n3"]}, outcome=("failed", "node_lost"),
        told=r"^Slurm: NODE_FAIL .*on n3; its runner was last heard [\dms]+ ago$", known=is_in(yard, "NODE_FAIL"),
        cause=lambda run, native: yard.lab.node_power_off("n3"),
    )  # fmt: skip


@called("a node without its daemon", SLURM)
def node_without_daemon(yard: OnCluster) -> Ending:
    """Slurm gives the job up, and its process runs on until it is told to end."""
    return Ending(
        spec={"command": ["sleep", "600"], "node": ["n2"]}, outcome=("failed", "node_lost"),
        told=r"^Slurm: NODE_FAIL .*; it ran for [\dms.]+", known=is_in(yard, "NODE_FAIL"),
        cause=lambda run, native: slurm(yard).kill_slurmd("n2"),
    )  # fmt: skip


@called("requeued", SLURM)
def requeued(yard: OnCluster) -> Ending:
    """By an operator, against what runyard asked for."""

    def requeue(run: int, native: str) -> None:
        slurm(yard).admin("scontrol", "update", f"jobid={native}", "Requeue=1")
        slurm(yard).admin("scontrol", "requeue", native)

    body = "echo attempt $RUNYARD_ATTEMPT; [ $RUNYARD_ATTEMPT = 2 ] || exec sleep 300"
    return Ending(
        spec={**shell(body), "retry": 1}, outcome=("failed", "preempted"),
        told=r"^Slurm took it .* back into its queue \(BeginTime\); it ran for [\dms.]+", known=is_in(yard, "PENDING"),
        cause=requeue,
    )  # fmt: skip


@called("vanished", SLURM)
def vanished(yard: OnCluster) -> Ending:
    """With all that the controller knew."""

    def forget(run: int, native: str) -> None:
        slurm(yard).stop_controller()
        shutil.rmtree(slurm(yard).root / "state")
        (slurm(yard).root / "state").mkdir()
        slurm(yard).start_controller()

    return Ending(
        spec={"command": ["sleep", "600"]}, outcome=("failed", "lost"),
        told=r"^Slurm does not know it any more, and its runner was last heard [\dms]+ ago$",
        known=lambda native: yard.lab.run("squeue", "-h").returncode == 0, cause=forget,
    )  # fmt: skip


@called("out of its time", SLURM)
def out_of_slurms_time(yard: OnCluster) -> Ending:
    """By the limit that Slurm enforces; its runner knows of none."""
    return Ending(
        spec={"command": ["sleep", "600"]}, outcome=("failed", "timeout"),
        told=r"^Slurm: TIMEOUT .*; it ran for [\dms.]+", known=is_in(yard, "TIMEOUT"),
        cause=lambda run, native: slurm(yard).admin("scontrol", "update", f"jobid={native}", "EndTime=now"),
    )  # fmt: skip


@called("no directory", SLURM)
def no_directory(yard: OnCluster) -> Ending:
    """Slurm cannot even open the job's output, so there is nothing but its word."""
    known = is_in(yard, "FAILED")
    return Ending(
        spec={"command": ["true"], "options": held(yard)}, outcome=("failed", "launch"), told="JobLaunchFailure",
        known=known, cause=lambda run, native: begin_nowhere(yard, native, known), begins=False,
    )  # fmt: skip


def preempted(yard: OnCluster) -> Ending:
    """Where there is a partition whose jobs go first, see `displace`. A job that must not be requeued goes for good."""
    return Ending(
        spec={"command": ["sleep", "300"], "options": {"partition": "scavenge", "nodelist": "n1", "exclusive": ""}},
        outcome=("failed", "preempted"), told=r"^Slurm: PREEMPTED .*; it ran for [\dms.]+",
        known=is_in(yard, "PREEMPTED"), cause=lambda run, native: displace(yard),
    )  # fmt: skip


def displace(yard: OnCluster) -> str:
    """A job that has the right to the node that scavengers share."""
    return slurm(yard).submit("--partition=urgent", "--nodelist=n1", "--exclusive", wrap="sleep 3")


def out_of_slurms_memory(yard: OnCluster) -> Ending:
    """Where control groups enforce it. The run asked for none, so its runner sees no more than a process that was
    killed: Slurm knows why."""
    return Ending(
        spec={"command": [NODE_PYTHON, "-c", "x = bytearray(900 << 20)"]}, outcome=("failed", "oom"), code=137,
        told=r"Slurm: OUT_OF_MEMORY .*; it ran for .* and used [\d.]+ MB of memory",
        known=is_in(yard, "OUT_OF_MEMORY"), begins=None,
    )  # fmt: skip
