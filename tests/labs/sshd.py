"""Login nodes: one sshd each on the loopback, keys that fit, and an ssh configuration to pass with `ssh -F`."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import psutil

from tests.labs import accounts, waiting
from tests.labs.daemons import Daemons, LabError
from tests.labs.lab import Lab


class SshLab(Lab):
    """
    names        of the login nodes, as in `ssh -F <configuration> login1`
    configuration, known_hosts, identity   the files of a client; the private key is the normal user's, and root's too
    user         who logs in
    """

    def __init__(self, names: Sequence[str] = ("login1", "login2"), env: Mapping[str, str] | None = None) -> None:
        """`env` is what every session finds in its environment, such as SLURM_CONF."""
        self.names = list(names)
        self.user = accounts.submitter()
        self.root = Path(tempfile.mkdtemp(prefix="ry-ssh-"))
        self.root.chmod(0o755)
        self.configuration = self.root / "config"
        self.known_hosts = self.root / "known_hosts"
        self.identity = self.root / "identity"
        self.logs = self.root / "log"
        self.logs.mkdir()
        self._env = dict(env or {})
        self._port = waiting.free_ports(1)[0]
        self._daemons = Daemons(self.logs, leftovers=[self.root])

    def start(self) -> Self:
        self._make_identity()
        for name in self.names:
            self._make_host_key(name)
            self._sshd_configuration(name).write_text(self._sshd_text(name))
        self.known_hosts.write_text("".join(map(self._known_host, self.names)))
        self.configuration.write_text("".join(map(self._host_text, self.names)))
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # a unit would make it, and here is none
        for name in self.names:
            self.start_sshd(name)
        return self

    def stop(self) -> None:
        self._daemons.close()

    def address(self, name: str) -> str:
        return f"127.0.0.{self.names.index(name) + 11}"

    def command(self, name: str, *words: str) -> list[str]:
        """`ssh` to this node; the words are quoted for the shell there."""
        return ["ssh", "-F", str(self.configuration), name, shlex.join(words)]

    def run(self, name: str, *words: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        return self.user.run(self.command(name, *words), timeout=timeout)

    # Faults, and their repair

    def kill_sshd(self, name: str) -> None:
        """New connections are refused; those that exist go on."""
        self._of(name).kill(name)

    def start_sshd(self, name: str) -> None:
        self._of(name).spawn(name, ["/usr/sbin/sshd", "-D", "-e", "-f", str(self._sshd_configuration(name))])
        waiting.until(lambda: waiting.accepts(self.address(name), self._port), f"sshd of {name} listening")

    def drop_connections(self, name: str) -> int:
        """Cut every open connection; what was started through it goes on. How many processes served them."""
        sessions = self._sessions(name)
        for session in sessions:
            with contextlib.suppress(psutil.NoSuchProcess):
                session.kill()
        return len(sessions)

    def freeze(self, name: str) -> None:
        """The node hangs: connections stay open, and nothing is answered until `thaw`."""
        self._of(name).pause(name)
        self._to_every_session(name, psutil.Process.suspend)

    def thaw(self, name: str) -> None:
        self._of(name).resume(name)
        for session in self._sessions(name):
            with contextlib.suppress(psutil.NoSuchProcess):
                session.resume()

    def change_host_key(self, name: str) -> None:
        """As after a reinstallation, or an attack: clients know another key, and no connection is left from before."""
        self._of(name).pause(name)  # lest one be made between the two
        self._to_every_session(name, psutil.Process.kill)
        self._of(name).kill(name)
        self._make_host_key(name)
        self.start_sshd(name)

    def tidy(self) -> None:
        """Every sshd alive, every host key known."""
        for name in self.names:
            if name not in self._of(name).pids():
                self.start_sshd(name)
        self.known_hosts.write_text("".join(map(self._known_host, self.names)))

    # Preparation

    def _of(self, name: str) -> Daemons:
        """Who looks after the sshd of this node."""
        return self._daemons

    def _to_every_session(self, name: str, work: Callable[[psutil.Process], None]) -> None:
        """Of an sshd that is paused, also to those that come meanwhile: one that lets somebody in becomes two."""
        done: set[psutil.Process] = set()
        while new := set(self._sessions(name)) - done:
            for session in new:
                with contextlib.suppress(psutil.NoSuchProcess):
                    work(session)
            done |= new

    def _sessions(self, name: str) -> list[psutil.Process]:
        """The processes that serve connections."""
        return [child for child in self._descendants(name) if _name(child) == "sshd"]

    def _descendants(self, name: str) -> list[psutil.Process]:
        try:
            return psutil.Process(self._daemons.pids()[name]).children(recursive=True)
        except (KeyError, psutil.NoSuchProcess):
            raise LabError(f"the sshd of {name} is down, and its connections cannot be told from others") from None

    def _make_identity(self) -> None:
        """ssh refuses a key of its own user that others may read, and looks at no one else's: this one is good for
        the normal user and for root."""
        _make_key(self.identity)
        self.user.own(self.identity)
        shutil.copy(self.identity.with_suffix(".pub"), self.root / "authorized_keys")

    def _make_host_key(self, name: str) -> None:
        key = self._host_key(name)
        for path in (key, key.with_suffix(".pub")):
            path.unlink(missing_ok=True)
        _make_key(key)

    def _host_key(self, name: str) -> Path:
        return self.root / f"{name}-key"

    def _sshd_configuration(self, name: str) -> Path:
        return self.root / f"{name}-sshd"

    def _sshd_text(self, name: str) -> str:
        env = {"RUNYARD_LAB_NODE": name, **self._env}
        return _lines({
            "ListenAddress": f"{self.address(name)}:{self._port}",
            "HostKey": self._host_key(name),
            "PidFile": "none",
            "AuthorizedKeysFile": self.root / "authorized_keys",
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "AllowUsers": self.user.name,
            "UseDNS": "no",
            "PrintMotd": "no",
            "MaxStartups": "100:30:200",
            "MaxSessions": 100,
            "Subsystem": "sftp internal-sftp",
            "SetEnv": " ".join(f'{key}="{value}"' for key, value in env.items()),
        })  # fmt: skip

    def _known_host(self, name: str) -> str:
        kind, key, *_ = self._host_key(name).with_suffix(".pub").read_text().split()
        return f"[{self.address(name)}]:{self._port} {kind} {key}\n"

    def _host_text(self, name: str) -> str:
        return f"Host {name}\n" + _lines({
            "HostName": self.address(name),
            "Port": self._port,
            "User": self.user.name,
            "IdentityFile": self.identity,
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": self.known_hosts,
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "BatchMode": "yes",
        })  # fmt: skip


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def _make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)], check=True)


def _lines(settings: Mapping[str, object]) -> str:
    return "".join(f"{name} {value}\n" for name, value in settings.items())
