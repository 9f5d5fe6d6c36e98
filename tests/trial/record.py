"""What runs themselves write down about their execution, independent of what the yard says about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.acceptance.witness import Witness

STEP_S = 0.2  # between two signs of life


@dataclass(kw_only=True)
class Execution:
    """
    pid, runner   as its node counts
    code          exit code that it was about to end with; None: it did not come that far
    """

    run: int
    attempt: int
    pid: int
    runner: int
    node: str
    begun_at: float
    ended_at: float | None = None
    code: int | None = None


@dataclass(frozen=True, kw_only=True)
class Found:
    """`overlaps`: (run, attempt) of executions that went on when a later one of the same run had begun."""

    executions: list[Execution] = field(default_factory=list)
    overlaps: set[tuple[int, int]] = field(default_factory=set)

    def of(self, run: int, attempt: int | None = None) -> list[Execution]:
        return [one for one in self.executions if one.run == run and attempt in (None, one.attempt)]


class Record(Witness):
    """Each line is one write with O_APPEND, so the order of the lines is the order in time on all nodes."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.path.chmod(0o666)  # nodes have an account of their own

    def command(self, body: str) -> list[str]:
        return ["/bin/sh", "-c", f"{self._functions()}; sign start; {body}"]

    def announced(self, command: list[str]) -> list[str]:
        """The same command, which signs before it begins; its process has the same number and parent."""
        return ["/bin/sh", "-c", f'{self._functions()}; sign start; exec "$@"', "sh", *command]

    @staticmethod
    def work(steps: int) -> str:
        """For `command`: live so long, and show it."""
        return f"i=0; while [ $i -lt {steps} ]; do sleep {STEP_S}; alive; i=$((i+1)); done"

    def read(self) -> Found:
        found = Found()
        last: dict[int, Execution] = {}
        for word, run, attempt, pid, *rest in self._lines():
            if word == "start":
                last[run] = _execution(run, attempt, pid, rest)
                found.executions.append(last[run])
            elif (last[run].attempt, last[run].pid) != (attempt, pid):
                found.overlaps.add((run, attempt))
            if word == "end":
                _end(found.of(run, attempt), pid, rest)
        return found

    def _functions(self) -> str:
        who = "$RUNYARD_RUN_ID $RUNYARD_ATTEMPT $$"
        sign = f'sign() {{ echo "$1 {who} $PPID $(uname -n) $(date +%s.%N) $2" >> {self.path}; }}'
        return f'{sign}; alive() {{ echo "alive {who}" >> {self.path}; }}'

    def _lines(self) -> Iterator[tuple[str, int, int, int, *tuple[str, ...]]]:
        for line in self.path.read_text().splitlines():
            word, run, attempt, pid, *rest = line.split()
            yield word, int(run), int(attempt), int(pid), *rest


def _execution(run: int, attempt: int, pid: int, rest: list[str]) -> Execution:
    runner, node, at = rest
    return Execution(run=run, attempt=attempt, pid=pid, runner=int(runner), node=node, begun_at=float(at))


def _end(executions: list[Execution], pid: int, rest: list[str]) -> None:
    for one in executions:
        if one.pid == pid:
            one.ended_at, one.code = float(rest[2]), int(rest[3])
