"""The running thing: munge, slurmctld, one slurmd a node and, when asked for, slurmdbd on a MariaDB."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
from pathlib import Path
from typing import Self

from tests.labs import waiting
from tests.labs.cluster import Cluster
from tests.labs.daemons import Daemons, LabError
from tests.labs.machines import Network
from tests.labs.slurm import configuration
from tests.labs.slurm.accounting import Accounting
from tests.labs.slurm.configuration import Layout, Node, Options

_NUMBERS = itertools.count(1)
_UP = {"idle", "mixed", "allocated", "completing"}


class SlurmLab(Cluster):
    kind = "slurm"

    def __init__(self, options: Options | None = None, *, below: Path | None = None) -> None:
        super().__init__(below)
        self.options = options or Options()
        # Control groups of all labs lie in one place, under the names of the nodes.
        prefix = f"c{os.getpid()}x{next(_NUMBERS)}n" if self.options.cgroup_memory else "n"
        self.nodes = [f"{prefix}{number}" for number in range(1, self.options.nodes + 1)]
        self.env = {"SLURM_CONF": str(self.root / "slurm.conf")}
        self._daemons = Daemons(self.logs, leftovers=[self.root, *self._groups()])
        self.network = Network(self.root, self.nodes) if self.options.isolate else None
        self.layout = self._lay_out()
        self._accounting = Accounting(self.layout, self._daemons) if self.options.accounting else None

    def start(self) -> Self:
        self._make_directories()
        configuration.write(self.layout, self.options)
        self._make_key()
        self.start_munge()
        if self._accounting:
            self._accounting.start(self.user.name, self.options.max_submit_jobs)
        self.start_controller()
        for node in self.nodes:
            self.start_slurmd(node)
        self.wait_nodes()
        return self

    def stop(self) -> None:
        if self.network:
            self.network.close()
        self._daemons.close()

    # Jobs

    def submit(self, *words: str, wrap: str | None = None) -> str:
        """`sbatch WORDS…`; the job's number."""
        script = [] if wrap is None else ["--wrap", wrap]
        return self.ask("sbatch", "--parsable", *words, *script).strip().partition(";")[0]

    def job(self, number: str) -> dict[str, str]:
        """What scontrol knows, values up to their first blank; nothing once Slurm has forgotten the job. A controller
        that is busy is asked again: no answer in time is no word on a job."""

        def asked() -> subprocess.CompletedProcess[str] | None:
            done = self.run("scontrol", "show", "job", "--oneliner", number)
            return done if done.returncode == 0 or "Invalid job id" in done.stderr else None

        done = waiting.until(asked, f"a word of slurmctld on job {number}")
        words = done.stdout.splitlines()[0].split() if done and done.returncode == 0 else []
        return dict(word.split("=", 1) for word in words if "=" in word)

    def wait_job(self, number: str, *states: str, timeout_s: float = 120) -> dict[str, str]:
        def found() -> dict[str, str] | None:
            job = self.job(number)
            return job if job.get("JobState") in states else None

        return waiting.until(found, f"job {number} {' or '.join(states)}", timeout_s=timeout_s, every_s=0.1) or {}

    def cpu_seconds(self) -> dict[str, float]:
        """Used so far: `control` by the daemons of the whole cluster, `nodes` by slurmd, its steps and the jobs."""
        used = self._daemons.cpu_seconds()
        nodes = sum(seconds for name, seconds in used.items() if name.startswith(("slurmd-", "jobs")))
        return {"control": sum(used.values()) - nodes, "nodes": nodes}

    # Faults, and their repair

    def kill_slurmd(self, node: str) -> None:
        """The jobs of the node go on."""
        self._daemons_of(node).kill(f"slurmd-{node}")

    def start_slurmd(self, node: str) -> None:
        if self.network and node not in self.network.machines:
            self.network.power_on(node)
        command = ["/usr/sbin/slurmd", "-D", "-N", node, "-f", str(self.layout.configuration)]
        self._daemons_of(node).spawn(f"slurmd-{node}", command, self.env)

    def declare_down(self, node: str) -> None:
        """By an operator who does not wait for `slurmd_timeout_s`."""
        self.admin("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=dead")

    def node_power_on(self, node: str) -> None:
        self.start_slurmd(node)
        self.wait_nodes(node)

    def stop_controller(self, *, kill9: bool = False) -> None:
        end = self._daemons.kill if kill9 else self._daemons.stop
        end("slurmctld")

    def start_controller(self) -> None:
        command = ["/usr/sbin/slurmctld", "-D", "-f", str(self.layout.configuration)]
        self._daemons.spawn("slurmctld", command, self.env)
        where = self.layout.controller_address, self.layout.controller_port
        waiting.until(lambda: waiting.accepts(*where), "slurmctld listening")

    def restart_controller(self, *, kill9: bool = False) -> None:
        self.stop_controller(kill9=kill9)
        self.start_controller()

    def until_saved(self, number: str) -> None:
        """The state is written at most every five seconds, and later on a busy machine; a younger job may be forgotten
        by a controller that is killed."""
        mark = f"seen-{next(_NUMBERS)}-{number}"  # which the file then contains: one that is being written may not
        self.admin("scontrol", "update", f"JobId={number}", f"Comment={mark}")
        waiting.until(lambda: mark.encode() in self._saved_jobs(), "the state saved", timeout_s=120)

    def _saved_jobs(self) -> bytes:
        """For a moment of each save there is no such file."""
        try:
            return (self.root / "state" / "job_state").read_bytes()
        except FileNotFoundError:
            return b""

    def saved_state(self) -> Path:
        """A copy of what slurmctld has on disk now, for `lose_what_came_after`."""
        copy = self.root / f"state-{next(_NUMBERS)}"
        self.hang_controller()
        subprocess.run(["cp", "-a", str(self.root / "state"), str(copy)], check=True)
        self.resume_controller()
        return copy

    def lose_what_came_after(self, saved: Path) -> None:
        """kill -9 before the next save, which comes up to five seconds after a change, without the race for it."""
        self.stop_controller(kill9=True)
        shutil.rmtree(self.root / "state")
        saved.rename(self.root / "state")
        self.start_controller()

    def hang_controller(self) -> None:
        """It accepts connections and says nothing, until `resume_controller`."""
        self._daemons.pause("slurmctld")

    def resume_controller(self) -> None:
        self._daemons.resume("slurmctld")

    def kill_munge(self) -> None:
        """Clients then try for most of a minute; after an orderly end, which takes the socket away, for two seconds."""
        self._daemons.kill("munged")

    def start_munge(self) -> None:
        directory = self.root / "munge"
        files = {"key-file": directory / "key", "socket": self.layout.munge_socket, "pid-file": directory / "pid"}
        files |= {"log-file": directory / "log", "seed-file": directory / "seed"}
        words = [f"--{name}={path}" for name, path in files.items()]
        self.layout.munge_socket.unlink(missing_ok=True)
        self._daemons.spawn("munged", ["/usr/sbin/munged", "--foreground", *words])
        waiting.until(self.layout.munge_socket.exists, "munged listening", every_s=0.005)

    def stop_slurmdbd(self) -> None:
        self._daemons.stop("slurmdbd")

    def start_slurmdbd(self) -> None:
        if not self._accounting:
            raise LabError("this lab has no accounting")
        self._accounting.start_slurmdbd()

    def node_states(self) -> dict[str, str]:
        """In sinfo's words; a star is a node that does not answer."""
        lines = self.admin("sinfo", "-h", "-N", "-o", "%N %T").splitlines()
        return dict(line.split() for line in lines)

    def wait_nodes(self, *nodes: str) -> None:
        """Until they take jobs, all of them when none is named."""

        def ready() -> bool:
            with contextlib.suppress(LabError):  # a controller that is busy does not answer in time
                states = self.node_states()
                return all(states.get(node) in _UP for node in nodes or self.nodes)
            return False

        waiting.until(ready, f"{', '.join(nodes or self.nodes)} ready", timeout_s=180)

    def tidy(self) -> None:
        self._revive()
        waiting.until(self._clear, "jobs cancelled and nodes resumed", timeout_s=180)
        self.wait_nodes()
        waiting.until(self._is_idle, "the queue empty", timeout_s=180)

    def _clear(self) -> bool:
        """False: the controller did not answer in time."""
        with contextlib.suppress(LabError):
            self.admin("scancel", "--quiet", f"--user={self.user.name}")
            for node, state in self.node_states().items():
                if state.startswith(("down", "drain", "fail")):
                    self._resume(node)
            return True
        return False

    def _is_idle(self) -> bool:
        with contextlib.suppress(LabError):
            return not self.admin("squeue", "-h", "-o", "%i")
        return False

    def _resume(self, node: str) -> None:
        """One that came back by itself in the meantime is refused, and ready."""
        with contextlib.suppress(LabError):
            self.admin("scontrol", "update", f"NodeName={node}", "State=RESUME")

    # Preparation

    def _daemons_of(self, node: str) -> Daemons:
        return self.network.machines[node].daemons if self.network else self._daemons

    def _make_directories(self) -> None:
        for name in ("munge", "state", "run", "spool", *(f"spool/{node}" for node in self.nodes)):
            (self.root / name).mkdir()
        if self.options.gpus:
            self._make_devices()

    def _make_devices(self) -> None:
        (self.root / "devices").mkdir()
        for number in range(self.options.gpus):
            os.mknod(self.root / "devices" / f"gpu{number}", 0o20666, os.makedev(1, 3))

    def _groups(self) -> list[Path]:
        controllers = ("memory", "freezer", "cpuset", "devices", "cpuacct", "cpu") if self.options.cgroup_memory else ()
        return [Path("/sys/fs/cgroup", name, f"slurm_{node}") for name in controllers for node in self.nodes]

    def _lay_out(self) -> Layout:
        controller, database, *ports = waiting.free_ports(2 + len(self.nodes))
        return Layout(
            root=self.root,
            user=configuration.user_name(os.geteuid()),
            controller_address=self.network.address if self.network else "127.0.0.1",
            controller_port=controller,
            database_port=database,
            nodes=tuple(self._node(name, port) for name, port in zip(self.nodes, ports, strict=True)),
        )

    def _node(self, name: str, port: int) -> Node:
        if self.network:
            return Node(name=name, host=name, address=self.network.address_of(name), port=port)
        return Node(name=name, host=configuration.host_name(), address="127.0.0.1", port=port)

    def _make_key(self) -> None:
        key = self.root / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)

    def _revive(self) -> None:
        alive = self._daemons.pids()
        self.resume_controller()
        if "munged" not in alive:
            self.start_munge()
        if self._accounting and "slurmdbd" not in alive:
            self._accounting.start_slurmdbd()
        if "slurmctld" not in alive:
            self.start_controller()
        for node in self.nodes:
            if not self._has_slurmd(node):
                self.start_slurmd(node)
            if self.network:
                self.network.plug(node)

    def _has_slurmd(self, node: str) -> bool:
        if self.network and node not in self.network.machines:
            return False
        return f"slurmd-{node}" in self._daemons_of(node).pids()
