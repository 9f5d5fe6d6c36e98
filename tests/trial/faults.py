"""Faults that hit a yard at work. What each does is repaired before it returns; how it is done is drawn beforehand."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.labs.postgres import Server
from tests.labs.slurm import SlurmLab
from tests.trial.record import Execution
from tests.trial.sites import AGENTS, KINDS, ClusterSite, NodesSite, Site

VICTIM_S = 15.0  # within which a run begins, where there is any left


@dataclass(frozen=True, kw_only=True)
class Fault:
    """
    pause_s   before it hits
    hold_s    from the fault to its repair
    chance    from 0 to 1: which of its victims
    """

    kind: str
    pause_s: float
    hold_s: float
    chance: float


class Faults:
    """`killed`: (run, attempt) whose runner was killed."""

    def __init__(self, site: Site, server: Server | None) -> None:
        self._site, self._server = site, server
        self.killed: set[tuple[int, int]] = set()

    def hit(self, fault: Fault) -> bool:
        """Whether there was something to hit."""
        time.sleep(fault.pause_s)
        return _HITS[fault.kind](self, fault) is not False

    def _kill_yard(self, fault: Fault) -> None:
        self._site.yard.kill9()
        time.sleep(fault.hold_s)
        self._site.yard.start()

    def _stop_yard(self, fault: Fault) -> None:
        _freeze(self._site.yard.pid, fault.hold_s)

    def _kill_agent(self, fault: Fault) -> None:
        name = _chosen(fault, list(AGENTS))
        self._site.agents[name].kill()
        self._site.agents[name].wait()
        time.sleep(fault.hold_s)
        self._site.start_agent(name)

    def _stop_agent(self, fault: Fault) -> None:
        _freeze(self._site.agents[_chosen(fault, list(AGENTS))].pid, fault.hold_s)

    def _kill_runner(self, fault: Fault) -> bool:
        """Of a run that has begun and not ended; one may have to begin first."""
        deadline = time.monotonic() + VICTIM_S
        while not (victim := next(filter(self._site.kill_runner, self._begun(fault)), None)):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.5)
        self.killed.add((victim.run, victim.attempt))
        return True

    def _begun(self, fault: Fault) -> list[Execution]:
        """Without an end of their own, beginning with the one that was drawn."""
        found = [one for one in self._site.record.read().executions if one.code is None]
        first = int(fault.chance * len(found))
        return found[first:] + found[:first]

    def _restart_store(self, fault: Fault) -> None:
        assert self._server is not None
        self._server.end() if fault.chance < 0.5 else self._server.kill9()
        time.sleep(fault.hold_s)
        self._server.begin()

    def _restart_controller(self, fault: Fault) -> None:
        """In order: one that is killed forgets what it has not saved yet, and those jobs are lost by Slurm itself."""
        lab = self._site.lab if isinstance(self._site, ClusterSite) else None
        assert isinstance(lab, SlurmLab)
        lab.stop_controller()
        time.sleep(fault.hold_s)
        lab.start_controller()

    def _drop_connection(self, fault: Fault) -> None:
        assert isinstance(self._site, NodesSite)
        lab, node = self._site.lab, _chosen(fault, self._site.lab.names)
        lab.kill_sshd(node)
        lab.drop_connections(node)
        time.sleep(fault.hold_s)
        lab.start_sshd(node)


_HITS: dict[str, Callable[[Faults, Fault], bool | None]] = {
    "kill -9 of the yard": Faults._kill_yard,
    "SIGSTOP of the yard": Faults._stop_yard,
    "kill -9 of an agent": Faults._kill_agent,
    "SIGSTOP of an agent": Faults._stop_agent,
    "kill -9 of a runner": Faults._kill_runner,
    "PostgreSQL restart": Faults._restart_store,
    "slurmctld restart": Faults._restart_controller,
    "SSH connection drop": Faults._drop_connection,
}
_ONLY_ON = {
    "kill -9 of an agent": "two agents apart",
    "SIGSTOP of an agent": "two agents apart",
    "slurmctld restart": "Slurm",
    "SSH connection drop": "SSH nodes",
}


def drawn(draw: Random, count: int, site: str, *, postgres: bool) -> list[Fault]:
    """All that this configuration can have come in turn before one comes again."""
    assert site in KINDS, site
    kinds = [kind for kind in _HITS if _ONLY_ON.get(kind, site) == site]
    kinds = [kind for kind in kinds if postgres or kind != "PostgreSQL restart"]
    draw.shuffle(kinds)
    return [
        Fault(
            kind=kinds[number % len(kinds)], pause_s=draw.uniform(0.2, 4), hold_s=draw.uniform(0.1, 5),
            chance=draw.random(),
        )
        for number in range(count)
    ]  # fmt: skip


def _freeze(pid: int, seconds: float) -> None:
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _chosen(fault: Fault, names: list[str]) -> str:
    return names[int(fault.chance * len(names))]
