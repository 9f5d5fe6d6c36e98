"""Ways in which a run ends that only Grid Engine has, or tells in words of its own; see endings.py."""

from __future__ import annotations

from tests.acceptance.cluster_yard import OnCluster
from tests.acceptance.endings import Ending, Gate, Table, begin_nowhere, called, engine, held, is_over, shell

GRID_ENGINE: Table = {}


def has_lost_sight(yard: OnCluster, node: str) -> bool:
    rows = [line.split() for line in yard.lab.ask("qstat", "-f").splitlines()]
    return any(row[0] == f"cpu@{node}" and "u" in row[-1] for row in rows if row)


@called("a host without power", GRID_ENGINE)
def host_without_power(yard: OnCluster) -> Ending:
    """Grid Engine only loses sight of it; the runner's silence is the second witness."""
    return Ending(
        spec={"command": ["sleep", "600"], "options": {"queue": "cpu@ge2"}}, outcome=("failed", "node_lost"),
        told=r"lost sight of its node ge2, and its runner was last heard [\dms]+ ago",
        known=lambda native: has_lost_sight(yard, "ge2"),
        cause=lambda run, native: yard.lab.node_power_off("ge2"),
    )  # fmt: skip


@called("a host without its daemon", GRID_ENGINE)
def host_without_daemon(yard: OnCluster) -> Ending:
    """Grid Engine loses sight of it as of one without power; but its runner beats, and the run goes on."""
    gate = Gate(yard)
    return Ending(
        spec={**shell(f"{gate.wait}; exit 5"), "options": {"queue": "cpu@ge1"}}, outcome=("failed", "error"), code=5,
        told="^exited with 5$", known=lambda native: has_lost_sight(yard, "ge1"),
        cause=lambda run, native: engine(yard).kill_execd("ge1"), outlives=gate.open,
    )  # fmt: skip


@called("rescheduled", GRID_ENGINE)
def rescheduled(yard: OnCluster) -> Ending:
    """By an operator, against what runyard asked for."""
    body = "echo attempt $RUNYARD_ATTEMPT; [ $RUNYARD_ATTEMPT = 2 ] || sleep 300"
    return Ending(
        spec={**shell(body), "retry": 1}, outcome=("failed", "preempted"),
        told=r"Grid Engine: failed 25: rescheduling.* \d+", known=lambda native: bool(engine(yard).records(native)),
        cause=lambda run, native: engine(yard).admin("qmod", "-f", "-rj", native),
    )  # fmt: skip


@called("forgotten", GRID_ENGINE)
def forgotten(yard: OnCluster) -> Ending:
    """An operator had the qmaster forget it, whatever becomes of its processes."""
    return Ending(
        spec={"command": ["sleep", "600"]}, outcome=("failed", "lost"),
        told=r"given up by its scheduler after [\dms.]+|its runner was last heard [\dms]+ ago", known=is_over(yard),
        cause=lambda run, native: engine(yard).admin("qdel", "-f", native),
    )  # fmt: skip


@called("in error (Eqw)", GRID_ENGINE)
def in_error(yard: OnCluster) -> Ending:
    def known(native: str) -> bool:
        return "E" in engine(yard).state(native)

    return Ending(
        spec={"command": ["true"], "options": held(yard)}, outcome=("failed", "launch"),
        told=r"Grid Engine could not start it: .*can't chdir to /", known=known,
        cause=lambda run, native: begin_nowhere(yard, native, known), begins=False,
    )  # fmt: skip


@called("out of its time", GRID_ENGINE)
def out_of_engines_time(yard: OnCluster) -> Ending:
    """A runner that sleeps cannot end its run in time."""
    return Ending(
        spec={**shell("kill -STOP $PPID; sleep 600"), "resources": {"time": "5s"}},
        outcome=("failed", "timeout"), told=r"Grid Engine: failed 37: .*after [\dms]+", known=is_over(yard),
        begins=None, site=(("--option", "time_margin=5s"), ("--option", "time_margin=60s")),
    )  # fmt: skip
