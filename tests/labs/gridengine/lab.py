"""The running thing: a qmaster on this machine, and execution hosts that are machines of their own.

All execution hosts of a cell listen on one port and on every address, so each must have its own network. The qmaster
has this machine's network, for clients to reach it, but a hosts file of its own, for it to know the execution hosts.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
from pathlib import Path
from typing import Self

from tests.labs import accounts, waiting
from tests.labs.cluster import Cluster
from tests.labs.daemons import Daemons, LabError
from tests.labs.gridengine import configuration
from tests.labs.gridengine.configuration import PROGRAMS, Options
from tests.labs.machines import Network

_RULER = "=" * 62


class GridEngineLab(Cluster):
    kind = "gridengine"

    def __init__(self, options: Options | None = None) -> None:
        super().__init__()
        self.options = options or Options()
        self.nodes = [f"ge{number}" for number in range(1, self.options.hosts + 1)]
        self.host = socket.gethostname().partition(".")[0]
        self.env = self._client_env()
        self._head = Daemons(self.logs, inside=["unshare", "--mount"], leftovers=[self.root])
        self.network: Network = Network(self.root, self.nodes)
        self._disturbed = False  # since the last tidy

    def start(self) -> Self:
        self._make_head()
        self._make_cell()
        self._spool()
        self.start_qmaster()
        self._configure()
        for node in self.nodes:
            self.start_execd(node)
        self.wait_nodes()
        return self

    def stop(self) -> None:
        self.network.close()
        self._head.close()

    # Jobs

    def submit(self, *words: str) -> str:
        """`qsub WORDS…`; the job's number."""
        return re.split(r"[.\s]", self.ask("qsub", "-terse", *words))[0]

    def state(self, number: str) -> str:
        """The state of a job in qstat's letters, of its first line when it is an array; nothing when it has left. A
        qmaster that is busy is asked again."""

        def asked() -> list[str] | None:
            with contextlib.suppress(LabError):
                return ["", *self.admin("qstat", "-u", "*").splitlines()]
            return None

        rows = [line.split() for line in waiting.until(asked, f"a word of the qmaster on job {number}") or []]
        return next((row[4] for row in rows if row[:1] == [number]), "")

    def records(self, number: str) -> list[dict[str, str]]:
        """What qacct has: a record for each time that the job, or a task of it, ended."""
        done = self.run("qacct", "-j", number)
        blocks = done.stdout.split(_RULER)[1:] if done.returncode == 0 else []
        return [dict(_pair(line) for line in block.strip().splitlines()) for block in blocks]

    def wait_state(self, number: str, *states: str, timeout_s: float = 150) -> str:
        def found() -> str:
            state = self.state(number)
            return state if state in states else ""

        try:
            return waiting.until(found, f"job {number} {' or '.join(states)}", timeout_s=timeout_s, every_s=0.1)
        except LabError as error:
            raise LabError(f"{error}; it is {self.state(number)!r}: {self.admin('qstat', '-f', '-u', '*')}") from None

    def wait_records(self, number: str, count: int = 1, timeout_s: float = 120) -> list[dict[str, str]]:
        """They come up to a second after the job has left the queue."""
        what = f"{count} accounting records of job {number}"
        waiting.until(lambda: len(self.records(number)) >= count, what, timeout_s=timeout_s, every_s=0.1)
        return self.records(number)

    # Faults, and their repair

    def kill_execd(self, node: str) -> None:
        """The jobs of the host go on. After its return, their ends are noticed up to a minute late."""
        self._disturbed = True
        self.network.machines[node].daemons.kill("execd")

    def start_execd(self, node: str) -> None:
        if node not in self.network.machines:
            self.network.power_on(node)
        self.network.machines[node].daemons.spawn("execd", [str(PROGRAMS / "sge_execd")], self._daemon_env())

    def node_power_on(self, node: str) -> None:
        self.start_execd(node)
        self.wait_nodes(node)

    def node_power_off(self, node: str) -> None:
        self._disturbed = True
        super().node_power_off(node)

    def stop_qmaster(self, *, kill9: bool = False) -> None:
        """Jobs go on. After its return, execution hosts speak to it again only half a minute later."""
        self._disturbed = True
        end = self._head.kill if kill9 else self._head.stop
        end("qmaster")

    def start_qmaster(self) -> None:
        self._head.spawn("qmaster", [str(PROGRAMS / "sge_qmaster")], self._daemon_env())
        waiting.until(self._answers, "qmaster answering")

    def restart_qmaster(self, *, kill9: bool = False) -> None:
        self.stop_qmaster(kill9=kill9)
        self.start_qmaster()

    def wait_nodes(self, *nodes: str) -> None:
        """Until they take jobs, all of them when none is named."""
        wanted = set(nodes or self.nodes)
        waiting.until(lambda: wanted <= self._ready(), f"{', '.join(sorted(wanted))} ready", timeout_s=180)

    def tidy(self) -> None:
        if "qmaster" not in self._head.pids():
            self.start_qmaster()
        with contextlib.suppress(LabError):  # jobs may end by themselves meanwhile, and none is an error to it
            self.admin("qdel", *(["-f"] if self._disturbed else []), "-u", "*")
        if self._disturbed:
            self._start_anew()
        for node in self.nodes:
            self.network.plug(node)
        self.wait_nodes()
        waiting.until(self._is_idle, "the queue empty", timeout_s=180)

    # Preparation

    def _client_env(self) -> dict[str, str]:
        qmaster, execd = waiting.free_ports(2)
        return {
            "SGE_ROOT": str(self.root),
            "SGE_CELL": "default",
            "SGE_QMASTER_PORT": str(qmaster),
            "SGE_EXECD_PORT": str(execd),
            "SGE_CLUSTER_NAME": "lab",
            "PATH": f"{PROGRAMS}:{accounts.PATH}",
        }

    def _daemon_env(self) -> dict[str, str]:
        """SGE_ND keeps daemons in the foreground."""
        own = {name: value for name, value in self.env.items() if name != "PATH"}
        return {**own, "LD_LIBRARY_PATH": str(PROGRAMS), "SGE_ND": "1"}

    def _make_head(self) -> None:
        hosts = self.root / "hosts-head"
        nodes = "".join(f"{self.network.address_of(name)} {name}\n" for name in self.nodes)
        hosts.write_text(Path("/etc/hosts").read_text() + nodes)
        self._head.run("mount", "--bind", str(hosts), "/etc/hosts")

    def _make_cell(self) -> None:
        for name in ("bin", "lib", "utilbin"):
            (self.root / name).mkdir()
            (self.root / name / "lx-amd64").symlink_to(PROGRAMS)
        (self.root / "util").symlink_to("/usr/share/gridengine/util")
        common = self.root / "default" / "common"
        for directory in (common, self.root / "spool/qmaster/job_scripts", self.root / "spool/execd"):
            directory.mkdir(parents=True)
        (common / "bootstrap").write_text(configuration.bootstrap(self.root))
        (common / "act_qmaster").write_text(f"{self.host}\n")
        (common / "host_aliases").write_text(self._aliases())
        (common / "settings.sh").write_text(configuration.settings_sh(self.env))
        self._head.run("chown", "-R", "sgeadmin:sgeadmin", str(self.root / "default"), str(self.root / "spool"))

    def _aliases(self) -> str:
        """Grid Engine refuses a host whose address means `localhost`, so here that is another name of this machine."""
        name, others, _ = socket.gethostbyaddr("127.0.0.1")
        return " ".join(dict.fromkeys([self.host, "localhost", name, *others])) + "\n"

    def _spool(self) -> None:
        spooling = configuration.spooling(self.root)
        resources = "/usr/share/gridengine/util/resources"
        cell = self._file("cell", configuration.cell(self.root, self.options))
        self._as_owner("spoolinit", "classic", "libspoolc", spooling, "init")
        self._as_owner("spooldefaults", "configuration", cell)
        self._as_owner("spooldefaults", "complexes", f"{resources}/centry")
        self._as_owner("spooldefaults", "usersets", f"{resources}/usersets")
        self._as_owner("spooldefaults", "pes", f"{resources}/pe")
        self._as_owner("spooldefaults", "managers", "root", "sgeadmin")
        self._as_owner("spooldefaults", "operators", "root", "sgeadmin")

    def _configure(self) -> None:
        self._qconf("-Msconf", configuration.scheduler(self._qconf("-ssconf")))
        self._qconf("-Mc", configuration.complexes(self._qconf("-sc")))
        self._qconf("-as", plain=self.host)
        for node in self.nodes:
            self._qconf("-ah", plain=node)
            self._qconf("-Ae", configuration.host(node, self.options))
        self._qconf("-Ahgrp", configuration.host_group(self.nodes))
        self._qconf("-Ap", configuration.spread())
        self._qconf("-Aq", configuration.queue(self.options, self.network.local))

    def _qconf(self, option: str, text: str | None = None, plain: str | None = None) -> str:
        """With the text as a file, as qconf's capital options want it."""
        words = [self._file("qconf", text)] if text is not None else [plain] if plain else []
        return self._in_head("qconf", option, *words)

    def _file(self, name: str, text: str) -> str:
        path = self.root / f"{name}.text"
        path.write_text(text)
        return str(path)

    def _as_owner(self, program: str, *words: str) -> None:
        self._in_head(program, *words, before=["setpriv", "--reuid=sgeadmin", "--regid=sgeadmin", "--init-groups"])

    def _in_head(self, program: str, *words: str, before: list[str] | None = None) -> str:
        variables = [f"{name}={value}" for name, value in self._daemon_env().items()]
        return self._head.run("env", *variables, *(before or []), str(PROGRAMS / program), *words)

    def _answers(self) -> bool:
        return self.user.run(["qconf", "-sss"], env=self.env).returncode == 0

    def _is_idle(self) -> bool:
        with contextlib.suppress(LabError):  # a qmaster that is busy does not answer in time
            return not self.admin("qstat", "-u", "*")
        return False

    def _ready(self) -> set[str]:
        """Hosts whose load is known; none while the qmaster does not answer."""
        rows: list[list[str]] = []
        with contextlib.suppress(LabError):
            rows = [line.split() for line in self.admin("qhost").splitlines()]
        return {row[0] for row in rows if len(row) > 3 and row[0] in self.nodes and row[3] != "-"}

    def _start_anew(self) -> None:
        """Hosts as if they had never had a job, and a qmaster that knows no connection to the ones before: over such a
        one it hands out a job that then stays in transfer for ever."""
        for node in list(self.network.machines):
            self.network.power_off(node)
        self.restart_qmaster(kill9=True)
        for node in self.nodes:
            shutil.rmtree(self.root / "spool" / "execd" / node, ignore_errors=True)
            self.start_execd(node)
        self._disturbed = False


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition(" ")
    return name, value.strip()
