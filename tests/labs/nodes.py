"""Machines without a scheduler: each has its own sshd, processes, home and disk, and can lose power (root only)."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import psutil

from tests.labs.daemons import Daemons
from tests.labs.machines import Machine, Network
from tests.labs.sshd import SshLab

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class NodeLab(SshLab):
    """`directory` is on each node's own disk: what lies there, this machine does not see, and no other node."""

    def __init__(self, names: Sequence[str] = ("hoff", "norman", "pitts")) -> None:
        super().__init__(names)
        self._network = Network(self.root, names)
        self.directory = f"{self._network.local}/runyard"

    def start(self) -> Self:
        for name in self.names:
            self._power_on(name)
        return super().start()

    def stop(self) -> None:
        self._network.close()
        super().stop()

    def address(self, name: str) -> str:
        return self._network.address_of(name)

    def read(self, name: str, path: str) -> str:
        """A file on that node."""
        return self.ask(name, "cat", path)

    def ask(self, name: str, *command: str) -> str:
        """What a short command says there, without ssh."""
        return self._of(name).run(*command)

    def commands(self, name: str) -> list[str]:
        """What runs there, as command lines."""
        return [" ".join(found) for process in self._processes(name) if (found := _command(process))]

    # Faults, and their repair

    def power_off(self, name: str) -> None:
        """As pulling the plug; what was on its disk is there again after `power_on`."""
        self._keep_disk(name)
        self._network.power_off(name)

    def power_on(self, name: str) -> None:
        self._power_on(name)
        self._restore_disk(name)
        self.start_sshd(name)

    def reboot(self, name: str) -> None:
        self.power_off(name)
        self.power_on(name)

    def unplug(self, name: str) -> None:
        """The node goes on, and nobody can reach it."""
        self._network.unplug(name)

    def plug(self, name: str) -> None:
        self._network.plug(name)

    def tidy(self) -> None:
        """Everything up, and nothing left over: each node is started anew, with an empty disk."""
        for name in self.names:
            if name in self._network.machines:
                self._network.power_off(name)
            self._disk(name).unlink(missing_ok=True)
            self._power_on(name)
        super().tidy()

    # Preparation

    def _of(self, name: str) -> Daemons:
        return self._network.machines[name].daemons

    def _sessions(self, name: str) -> list[psutil.Process]:
        """All but the one that listens, which the supervisor started."""
        first = self._network.machines[name].first_pid
        return [found for found in self._processes(name) if _name(found) == "sshd" and _parent(found) != first]

    def _processes(self, name: str) -> list[psutil.Process]:
        return psutil.Process(self._network.machines[name].first_pid).children(recursive=True)

    def _power_on(self, name: str) -> Machine:
        machine = self._network.power_on(name)
        boot_id, home = self.root / f"boot-{name}", self.root / f"home-{name}"
        boot_id.write_text(f"{uuid.uuid4()}\n")
        boot_id.chmod(0o644)
        home.mkdir(exist_ok=True)
        self.user.own(home)
        machine.daemons.run("mount", "--bind", str(boot_id), _BOOT_ID)
        machine.daemons.run("mount", "--bind", str(home), str(self.user.home))
        return machine

    def _disk(self, name: str) -> Path:
        return self.root / f"disk-{name}.tar"

    def _keep_disk(self, name: str) -> None:
        """As it is at this moment: tar says 1 of files that are being written, which are cut off then."""
        command = f"tar -C {self._network.local} -cf {self._disk(name)} . || [ $? = 1 ]"
        self._of(name).run("sh", "-c", command)

    def _restore_disk(self, name: str) -> None:
        self._of(name).run("tar", "-C", str(self._network.local), "-xpf", str(self._disk(name)))


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def _parent(process: psutil.Process) -> int | None:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.ppid()
    return None


def _command(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        return process.cmdline()
    return []
