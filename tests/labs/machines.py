"""Machines that can lose power: each has its own network, host name, processes and mounts (root only).

All of them hang on a switch, a bridge in a network namespace of its own, and so does this machine, by a cable named
`ry<number>`. The name claims the number and with it the subnet. When the switch's supervisor ends, the kernel takes
the namespace and with it every cable: nothing is left behind, not even by `kill -9`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.labs.daemons import Daemons, LabError

_MACHINE = ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


@dataclass(frozen=True, kw_only=True)
class Machine:
    name: str
    address: str
    daemons: Daemons

    @property
    def first_pid(self) -> int:
        """The machine's process 1, as this machine counts."""
        outer = self.daemons.pid
        return int(Path(f"/proc/{outer}/task/{outer}/children").read_text())


class Network:
    """`local` is a directory that every machine has and none shares with another, as /tmp or a scratch disk."""

    def __init__(self, directory: Path, names: Sequence[str]) -> None:
        self.names = list(names)
        self.local = directory / "local"
        self.hosts = directory / "hosts"
        self.machines: dict[str, Machine] = {}
        self._logs = directory / "log"
        self._switch = Daemons(self._logs, inside=["unshare", "--net"])
        self._number = self._claim()
        self.uplink = f"ry{self._number}"  # this machine's cable
        self.address = f"{self._subnet}.1"  # and its address on it
        self._connect()
        self.local.mkdir(mode=0o1777)
        self.local.chmod(0o1777)
        self.hosts.write_text(self._hosts())

    def power_on(self, name: str) -> Machine:
        machine = Machine(name=name, address=self.address_of(name), daemons=Daemons(self._logs, inside=_MACHINE))
        self.machines[name] = machine
        run = machine.daemons.run
        run("hostname", name)
        run("mount", "--bind", str(self.hosts), "/etc/hosts")
        run("mount", "-t", "tmpfs", "-o", "mode=1777,size=400m", "tmpfs", str(self.local))
        cable = ["type", "veth", "peer", "name", "eth0", "netns", str(machine.first_pid)]
        self._switch.run("ip", "link", "add", self._cable(name), *cable)
        self._switch.run("ip", "link", "set", self._cable(name), "master", "bridge", "up")
        # Always the same card: others remember for a while under which address they reached it.
        run("ip", "link", "set", "eth0", "address", f"02:00:00:00:{self._number:02x}:{self.names.index(name):02x}")
        run("ip", "address", "add", f"{machine.address}/24", "dev", "eth0")
        run("ip", "link", "set", "eth0", "up")
        run("ip", "link", "set", "lo", "up")
        return machine

    def power_off(self, name: str) -> None:
        """As pulling the plug: process 1 is killed, and the kernel ends the others without a word."""
        machine = self.machines.pop(name)
        os.kill(machine.first_pid, signal.SIGKILL)
        machine.daemons.close()
        with contextlib.suppress(LabError):  # the kernel takes the cable too, but in its own time
            self._switch.run("ip", "link", "delete", self._cable(name))

    def unplug(self, name: str) -> None:
        """The machine goes on, and nobody can reach it."""
        self._switch.run("ip", "link", "set", self._cable(name), "down")

    def plug(self, name: str) -> None:
        self._switch.run("ip", "link", "set", self._cable(name), "up")

    def close(self) -> None:
        for machine in self.machines.values():
            machine.daemons.close()
        self._switch.close()

    def address_of(self, name: str) -> str:
        return f"{self._subnet}.{self.names.index(name) + 11}"

    @property
    def _subnet(self) -> str:
        return f"10.213.{self._number}"

    def _claim(self) -> int:
        """Labs of other workers take their numbers at the same time; a link's name can be given only once."""
        for number in range(1, 255):
            command = ["ip", "link", "add", f"ry{number}", "type", "veth", "peer", "name", "uplink", "netns"]
            done = subprocess.run([*command, str(self._switch.pid)], capture_output=True, text=True)
            if done.returncode == 0:
                return number
            if "File exists" not in done.stderr:
                raise LabError(f"ip link add: {done.stderr.strip()}")
        raise LabError("254 networks of labs exist already: look at `ip link`")

    def _connect(self) -> None:
        subprocess.run(["ip", "address", "add", f"{self.address}/24", "dev", self.uplink], check=True)
        subprocess.run(["ip", "link", "set", self.uplink, "up"], check=True)
        self._switch.run("ip", "link", "add", "bridge", "type", "bridge")
        self._switch.run("ip", "link", "set", "uplink", "master", "bridge", "up")
        self._switch.run("ip", "link", "set", "bridge", "up")

    def _hosts(self) -> str:
        addresses = {"localhost": "127.0.0.1", socket.gethostname(): self.address}
        addresses |= {name: self.address_of(name) for name in self.names}
        return "".join(f"{address} {name}\n" for name, address in addresses.items())

    def _cable(self, name: str) -> str:
        return f"cable{self.names.index(name)}"
