"""Where runs of a trial execute: a yard with its site, and what can be done to both."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import psutil

import runyard
from runyard import errors
from tests.acceptance import cluster_yard, pool, test_ssh_nodes
from tests.acceptance.witness import until, with_argument
from tests.labs import commands, gridengine, slurm, waiting
from tests.labs.cluster import Cluster
from tests.labs.clusters import Labs
from tests.labs.daemons import LabError
from tests.labs.lab import Lab
from tests.labs.nodes import NodeLab
from tests.labs.yard import Yard, end_processes_of, processes_of
from tests.trial import plans
from tests.trial.invariants import Submitted
from tests.trial.record import Execution, Record

T = TypeVar("T")
PATIENCE_S = 120.0  # for a yard that was just started again, or has lost its store
LEAVE_S = 90.0  # after which no process of ours may be left
AGENTS = ("one", "two")


class TrialCluster(cluster_yard.ClusterYard):
    """One that several threads submit to, on any store."""

    def __init__(self, lab: Cluster, kind: str, store: str | None) -> None:
        super().__init__(lab, kind)
        self._store, self._submitting = store, threading.Lock()

    @property
    def env(self) -> dict[str, str]:
        return {**super().env, **({"RUNYARD_STORE": self._store} if self._store else {})}

    @property
    def pid(self) -> int:
        assert self._process is not None, "the yard is not up"
        return self._process.pid

    def hand_in(self, *specs: dict[str, Any]) -> list[int]:
        with self._submitting:  # its file has one name
            return super().hand_in(*specs)

    def end(self) -> None:
        assert self._process is not None, "the yard is not up"
        self._process.terminate()
        self._process.wait(PATIENCE_S)


class Site:
    """
    name     as specs have it
    agents   processes beside the yard that execute its runs, by name
    """

    def __init__(self, yard: Yard | TrialCluster, name: str, directory: Path) -> None:
        self.yard, self.name, self.record = yard, name, Record(directory)
        self.agents: dict[str, commands.Started] = {}

    def ask(self, question: Callable[[runyard.Client], T]) -> T:
        """The answer to something that may be asked twice, of a yard that may need a moment."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with runyard.Client(home=self.yard.home, start=False) as client:
                    return question(client)
            except errors.RunyardError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def submit(self, drawn: plans.Drawn, before: list[Submitted], retries: int = 0) -> Submitted:
        """`before`: those that were submitted, at the positions that `drawn.parent` means."""
        document = drawn.plan.document(self.record, drawn.steps)
        document |= {"site": self.name, "idempotency_key": secrets.token_hex(8), "retry": {"max": retries}}
        parent = None if drawn.parent is None else before[drawn.parent].id
        if parent is not None:
            document["after"] = [parent]
        [run] = self.ask(lambda client: client.submit_many([document]))
        return Submitted(id=run.id, kind=drawn.kind, plan=drawn.plan, retries=retries, parent=parent)

    def shown(self, ids: list[int]) -> dict[int, dict[str, Any]]:
        """With all attempts, as `show` has them."""
        return {number: self.ask(lambda client, number=number: client.run(number).data) for number in ids}  # type: ignore[misc]

    def unfinished(self, ids: list[int]) -> list[int]:
        runs = self.ask(lambda client: client.runs_by_id(ids))
        return [number for number in ids if number not in runs or not runs[number].final]

    def start_agent(self, name: str) -> None:
        """Of those that were killed."""

    def kill_runner(self, execution: Execution) -> bool:
        """Whether it was there to be killed: the run's process must still be its child."""
        try:
            self._on_node(execution.node, f"set -- $(cat /proc/{execution.pid}/stat) && [ $4 = {execution.runner} ] "
                          f"&& kill -9 {execution.runner}")  # fmt: skip
        except (LabError, subprocess.CalledProcessError):
            return False
        return True

    def end(self) -> list[str]:
        """Stop the yard and its agents; command lines of what they and the runs have left behind."""
        for agent in self.agents.values():
            agent.terminate()
            agent.wait(PATIENCE_S)
        self.yard.end() if isinstance(self.yard, TrialCluster) else self.yard.stop()
        with contextlib.suppress(AssertionError):
            until(lambda: not self._left(), timeout=LEAVE_S)
        return self._left()

    def remove(self) -> None:
        for agent in self.agents.values():
            agent.kill()
            agent.wait()
        self.yard.stop() if isinstance(self.yard, TrialCluster) else self.yard.remove()
        end_processes_of(self.record.path)

    def _left(self) -> list[str]:
        found = {*processes_of(self.yard.home), *with_argument(str(self.record.path))}
        commands = {pid: _command_line(pid) for pid in sorted(found)}
        return [f"{pid} {command}" for pid, command in commands.items() if not _stays(pid, commands)]

    def _on_node(self, node: str, script: str) -> None:
        subprocess.run(["sh", "-c", script], check=True, capture_output=True)


class AgentsSite(Site):
    """Two agents in processes of their own."""

    def __init__(self, yard: Yard) -> None:
        super().__init__(yard, pool.SITE, yard.home)
        self._pool = pool.Pool(yard)
        self._running = contextlib.ExitStack()
        for name in AGENTS:
            self.start_agent(name)

    def start_agent(self, name: str) -> None:
        self.agents[name] = self._running.enter_context(self._pool.agent(name, cpus=2))


class NodesSite(Site):
    """Machines that are reached by ssh."""

    def __init__(self, lab: NodeLab, yard: Yard) -> None:
        directory = lab.root / f"trial-{secrets.token_hex(4)}"  # which the nodes see
        directory.mkdir()
        directory.chmod(0o755)
        super().__init__(yard, test_ssh_nodes.SITE, directory)
        self.lab = lab
        self._nodes = test_ssh_nodes.NodeYard(lab, yard)
        self._nodes.add_site()
        self._nodes.until_up()

    def _on_node(self, node: str, script: str) -> None:
        self.lab.ask(node, "sh", "-c", script)


class ClusterSite(Site):
    """`runnerless`: runs on Slurm that have killed their runner."""

    def __init__(self, lab: Cluster, cluster: TrialCluster) -> None:
        cluster.start()
        super().__init__(cluster, cluster_yard.SITE, cluster.home)
        self.lab, self.cluster = lab, cluster
        self.runnerless: set[int] = set()
        cluster.add_site()

    def _left(self) -> list[str]:
        """Without what a run leaves whose runner was killed: no runner is there to end it, and Slurm finds it only
        where it tracks processes by control groups, which the lab's does not."""
        return [line for line in super()._left() if self._run_of(line) not in self.runnerless]

    def _run_of(self, line: str) -> int | None:
        with contextlib.suppress(OSError, psutil.Error):
            return int(psutil.Process(int(line.split()[0])).environ().get("RUNYARD_RUN_ID", 0))
        return None


KINDS: dict[str, tuple[str, ...]] = {
    "embedded agent": (),
    "two agents apart": (),
    "SSH nodes": ("sshd", "root"),
    "Slurm": ("slurm", "slurmdbd"),
    "Grid Engine": ("gridengine", "root"),
}
"""Kinds of sites, with the components that each needs."""


@contextlib.contextmanager
def opened(kind: str, labs: Labs, store: str | None = None) -> Iterator[Site]:
    """Everything of it is gone afterwards, except the labs, which are put in order for the next one."""
    made: list[Yard | TrialCluster] = []
    site: Site | None = None
    try:
        site = _make(kind, labs, store, made)
        yield site
    finally:
        if site is not None:
            site.remove()
        else:
            for yard in made:
                yard.stop() if isinstance(yard, TrialCluster) else yard.remove()
        if isinstance(site, NodesSite | ClusterSite):
            _tidy(site.lab, labs)


def _tidy(lab: Lab, labs: Labs) -> None:
    """One that cannot be put in order is ended, and the next trial gets its own."""
    try:
        lab.tidy()
    except Exception:
        labs.forget(lab)
        raise


def _make(kind: str, labs: Labs, store: str | None, made: list[Yard | TrialCluster]) -> Site:
    settings: dict[str, Any] = {"store": store} if store else {}
    if kind in ("Slurm", "Grid Engine"):
        lab = _cluster(kind, labs)
        cluster = TrialCluster(lab, lab.kind, store)
        made.append(cluster)
        return ClusterSite(lab, cluster)
    if kind == "embedded agent":
        yard = Yard(cpus=4, **settings)
        made.append(yard)
        return Site(yard.start(), "local", yard.home)
    yard = Yard(local_site="off", port=waiting.free_ports(1)[0], **settings)
    made.append(yard)
    if kind == "SSH nodes":
        return NodesSite(labs.get("nodes", NodeLab), yard)
    return AgentsSite(yard.start())


def _cluster(kind: str, labs: Labs) -> Cluster:
    if kind == "Slurm":
        accounting = slurm.Options(accounting=True)
        return labs.get(kind, lambda: slurm.SlurmLab(accounting))
    return labs.get(kind, lambda: gridengine.GridEngineLab(gridengine.Options()))


def _stays(pid: int, commands: dict[int, str]) -> bool:
    """By intention: a shared connection for some minutes (ControlPersist), and a pre-warmed process for an hour, one in
    each directory; runners forked from it look the same and do not stay."""
    command = commands[pid]
    alike = [other for other, found in commands.items() if found == command]
    return not command or command.startswith("ssh ") or (" zygote " in command and pid == alike[0])


def _command_line(pid: int) -> str:
    with contextlib.suppress(OSError):  # it may end while we look
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    return ""
