"""What the labs' clusters have in common: a user, a shared directory, commands, and machines that fail."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psutil

from tests.labs import accounts
from tests.labs.daemons import LabError
from tests.labs.lab import Lab
from tests.labs.machines import Network


class Cluster(Lab):
    """
    env         what clients need to find this cluster
    user        who submits: a normal account, also when root runs the lab
    directory   shared by all nodes, writable by the user
    unshared    a directory that every node has and none shares, where nodes are machines of their own
    nodes       their names
    """

    kind = ""
    env: dict[str, str]
    nodes: list[str]
    network: Network | None

    def __init__(self, below: Path | None = None) -> None:
        """`below` is where its directory is made, where that is not the one for temporary files."""
        self.user = accounts.submitter()
        self.root = Path(tempfile.mkdtemp(prefix=f"ry-{self.kind}-", dir=below))
        self.root.chmod(0o755)
        self.logs = self.root / "log"
        self.directory = self.root / "shared"
        self.logs.mkdir()
        self.directory.mkdir()
        self.user.own(self.directory)

    def run(self, *command: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """As the normal user, in the shared directory."""
        return self.user.run(command, env=self.env, **{"cwd": self.directory, **options})

    def ask(self, *command: str, **options: Any) -> str:
        """`run` that must succeed; the answer."""
        return _output(self.run(*command, **options))

    def admin(self, *command: str) -> str:
        """As who runs the cluster."""
        env = self.user.env(self.env)
        return _output(subprocess.run(command, env=env, cwd=self.root, capture_output=True, text=True, timeout=120))

    @property
    def machines(self) -> Network:
        if self.network is None:
            raise LabError("the nodes of this lab are no machines of their own: isolate=True makes them so")
        return self.network

    @property
    def unshared(self) -> Path:
        return self.machines.local

    def node_power_off(self, node: str) -> None:
        """As pulling the plug: every process of the node is gone at once, and nobody is told."""
        self.machines.power_off(node)

    def node_commands(self, node: str) -> dict[int, str]:
        """What runs on a node that is a machine: command lines by pid, as this machine counts."""
        first = psutil.Process(self.machines.machines[node].first_pid)
        found = {}
        for child in first.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):  # it may end while we look
                found[child.pid] = " ".join(child.cmdline())
        return found

    def node_unplug(self, node: str) -> None:
        """The network cable: the node's jobs go on, and nobody hears of them until `node_plug`."""
        self.machines.unplug(node)

    def node_plug(self, node: str) -> None:
        self.machines.plug(node)


def _output(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode:
        raise LabError(f"{' '.join(done.args)}: exit {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
