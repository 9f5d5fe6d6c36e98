"""How runs of a trial end: by themselves, by a limit, by a request, or before they begin."""

from __future__ import annotations

import random
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.trial.record import Record

FOREVER = 6000  # steps
TIME_LIMIT = "5s"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """
    outcome   state and reason that its last attempt has
    code      exit code, where its process has one
    last      what the shell does at its end; none: it lives until something ends it
    spec      further fields
    command   instead of one that signs the record
    cancel    the trial cancels it
    after     the kind of plan of a run that it comes after
    """

    outcome: tuple[str, str | None]
    code: int | None = None
    last: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    cancel: bool = False
    after: str = ""

    @property
    def begins(self) -> bool:
        return self.outcome[1] != "launch"

    def document(self, record: Record, steps: int) -> dict[str, Any]:
        """Fields of the run that follows this plan."""
        body = f"{record.work(steps)}; sign end {self.code}; {self.last}" if self.last else record.work(FOREVER)
        command = list(self.command) or record.command(body)
        return {"command": command, "cwd": "/tmp", **self.spec}


def _exit(code: int, **more: Any) -> Plan:
    outcome = ("failed", "error") if code else ("succeeded", None)
    return Plan(outcome=outcome, code=code, last=f"exit {code}", **more)


def _signal(number: signal.Signals) -> Plan:
    return Plan(outcome=("failed", "error"), code=128 + number, last=f"kill -{number.name.removeprefix('SIG')} $$")


PLANS: dict[str, Plan] = {
    "exit 0": _exit(0),
    "exit 1": _exit(1),
    "exit 77": _exit(77),
    "SIGSEGV": _signal(signal.SIGSEGV),
    "SIGKILL": _signal(signal.SIGKILL),
    "time limit": Plan(outcome=("failed", "timeout"), spec={"resources": {"time": TIME_LIMIT}}),
    "cancel": Plan(outcome=("cancelled", "user"), cancel=True),
    "no such program": Plan(outcome=("failed", "launch"), command=("/no/such/program",)),
    "no such directory": Plan(outcome=("failed", "launch"), spec={"cwd": "/no/such/directory"}),
    "after a success": _exit(0, after="exit 0"),
    "after a failure": _exit(0, after="exit 1"),
}


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """One run of a trial. `parent` is the position of the run that it comes after."""

    kind: str
    steps: int
    parent: int | None = None

    @property
    def plan(self) -> Plan:
        return PLANS[self.kind]


def drawn(draw: random.Random, count: int, steps: tuple[int, int] = (5, 40)) -> list[Drawn]:
    """Every kind in turn, in an order and of lengths that are drawn; a parent always stands before its children."""
    kinds = (list(PLANS) * (count // len(PLANS) + 1))[:count]
    draw.shuffle(kinds)
    kinds.sort(key=lambda kind: bool(PLANS[kind].after) and draw.random())
    found: list[Drawn] = []
    for kind in kinds:
        parents = [position for position, one in enumerate(found) if one.kind == PLANS[kind].after]
        parent = draw.choice(parents) if parents else None
        if PLANS[kind].after and parent is None:
            kind = PLANS[kind].after
        found.append(Drawn(kind=kind, steps=draw.randint(*steps), parent=parent))
    return found
