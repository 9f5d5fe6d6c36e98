"""Every ending of endings.py where nothing but cron does the work: told as by a yard that runs, and one interval later.

What the scheduler knows may take a minute to be certain, and cron comes once a minute: so of two ticks after it is
known, the second tells it, however early the first one came and whatever it made of it.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from tests.acceptance import endings, endings_on_slurm
from tests.acceptance.cron_yard import CronYard, Handed
from tests.acceptance.endings import BOTH, Ending, Table
from tests.acceptance.endings_on_gridengine import GRID_ENGINE
from tests.acceptance.endings_on_slurm import SLURM
from tests.acceptance.witness import until

pytestmark = pytest.mark.component("root")

MakeYard = Callable[..., CronYard]

PATIENCE_S = 400.0  # for all runs to be where they are to end
PACE_S = 45.0  # between two ticks: less than the minute of the crontab, and as long as any witness is waited for
LABS: dict[str, dict[str, Any]] = {
    "slurm": {"isolate": True, "nodes": 4, "cpus": 24, "preempt": "requeue"},
    "gridengine": {"hosts": 3, "slots": 24, "max_unheard_s": 30},
}
LATE: Table = {"restarted": endings.restarted, "deaf": endings.deaf}
TABLES: dict[str, Table] = {
    "slurm": {**BOTH, **SLURM, "preempted": endings_on_slurm.preempted, **LATE},
    "gridengine": {**BOTH, **GRID_ENGINE, **LATE},
}
HEARD = ("cancelled by runyard", "cancelled by runyard while it waits")
BY_US = (*HEARD, "deaf")


class Company:
    """A run for each ending, all in one home, and each a native job of its own."""

    def __init__(self, yard: CronYard, table: Table) -> None:
        self.yard, self._line = yard, yard.crontab()
        self.endings: dict[str, Ending] = {name: build(yard) for name, build in table.items()}
        self._runs: dict[str, int] = {}
        self._handed: dict[str, Handed] = {}

    def tick(self) -> None:
        answer = self.yard.tick(line=self._line)
        assert answer.returncode == 0, answer.stderr

    def hand_over(self, names: Iterable[str]) -> None:
        """Until all that wait or run do so."""
        wanted = list(names)
        runs = self.yard.hand_in(*map(self._spec, wanted))
        self._runs.update(zip(wanted, runs, strict=True))
        deadline = time.monotonic() + PATIENCE_S
        while absent := self._absent_after_a_tick(wanted):
            assert time.monotonic() < deadline, f"not where they are to end: {absent}\n{self.yard.told()}"

    def _absent_after_a_tick(self, names: Sequence[str]) -> list[str]:
        """Within the minute that is between two ticks of cron: a busy scheduler may not have answered the first."""
        self.tick()
        deadline = time.monotonic() + PACE_S
        while (absent := [name for name in names if not self._is_there(name)]) and time.monotonic() < deadline:
            time.sleep(0.2)
        return absent

    def hand_over_with_another_site(self, names: Iterable[str]) -> None:
        """The site is changed only while these are handed over."""
        wanted = list(names)
        self.yard.edit_site(*(word for name in wanted for word in self.endings[name].site[0]))
        self.hand_over(wanted)
        self.yard.edit_site(*(word for name in wanted for word in self.endings[name].site[1]))

    def cause(self, names: Iterable[str]) -> None:
        for name in names:
            self.endings[name].cause(self._runs[name], self._native(name))

    def await_known(self, names: Iterable[str]) -> None:
        for name in names:
            ending, native = self.endings[name], self._native(name)
            until(functools.partial(ending.known, native), timeout=150, what=f"the scheduler knows: {name}")

    def outlive(self, names: Iterable[str]) -> None:
        for name in names:
            finish = self.endings[name].outlives
            if finish is not None:
                finish()

    def await_record(self, name: str) -> None:
        status = self._handed[name].directory / "status.json"
        until(lambda: '"ended"' in status.read_text(), what="its exit record")

    def complaints(self, *but: str) -> dict[str, object]:
        """Of all that were handed in, but these."""
        told = self.yard.told()
        found = {
            name: self.endings[name].complaint(told[run]) if run in told else "it is not told"
            for name, run in self._runs.items()
            if name not in but
        }
        return {name: complaint for name, complaint in found.items() if complaint is not None}

    def _native(self, name: str) -> str:
        """Nothing for one that the scheduler refuses."""
        return self._handed[name].native if name in self._handed else ""

    def _spec(self, name: str) -> dict[str, Any]:
        """Runs that are alike would become one array; and what is done to a node is done to one run alone."""
        spec, number = self.endings[name].spec, list(self.endings).index(name)
        options = spec.get("options", {})
        is_placed = "node" in spec or options.keys() & {"queue", "nodelist"}
        place = {} if is_placed else {"node": [self.yard.lab.nodes[-1]]}
        own = {"comment": f"ending{number}"} if endings.on_slurm(self.yard) else {"ac": f"ending={number}"}
        return {**place, **spec, "options": {**options, **own}}

    def _is_there(self, name: str) -> bool:
        handed = self.yard.handed_over().get(self._runs[name])
        if handed is None:
            return name == "refused"
        self._handed[name] = handed
        return self.endings[name].begins is not True or handed.has_begun or self._runs[name] in self.yard.told()


def begin(company: Company) -> None:
    """All of them run, or wait, where they are to end."""
    special = [name for name, ending in company.endings.items() if ending.site[0]]
    company.hand_over_with_another_site(special)
    company.hand_over(name for name in company.endings if name not in ("vanished", *special))
    if "vanished" in company.endings:
        vanish(company)


def vanish(company: Company) -> None:
    """The controller comes back with what it knew before this one came; all others go on."""
    lab = endings.slurm(company.yard)
    lab.until_saved(lab.ask("squeue", "--noheader", "--states=RUNNING", "--format=%i").split()[0])
    before = lab.saved_state()
    company.hand_over(["vanished"])
    lab.lose_what_came_after(before)
    lab.wait_nodes()


def bring_about(company: Company) -> list[str]:
    """Until the scheduler knows all that it is to know by itself. Returns what that is."""
    company.cause(BY_US)
    company.tick()
    others = [name for name in company.endings if name not in ("vanished", *BY_US, *LATE)]
    company.cause(others)
    if endings.on_slurm(company.yard):
        for node in ("n2", "n3"):
            endings.slurm(company.yard).declare_down(node)
    company.await_known([*others, *HEARD])
    return others


@pytest.mark.long
@pytest.mark.parametrize("kind", ["slurm", "gridengine"])
def test_every_ending_is_told_by_cron_as_by_a_daemon(cron_yard: MakeYard, kind: str) -> None:
    company = Company(cron_yard(kind, eager=False, **LABS[kind]), TABLES[kind])
    begin(company)
    caused = bring_about(company)
    company.tick()
    company.outlive(caused)
    time.sleep(PACE_S)
    company.tick()
    assert company.complaints(*LATE) == {}
    company.await_known(["deaf"])  # by the last tick, which found that nobody had heard the first
    company.cause(["restarted"])
    company.outlive(["restarted"])
    company.await_record("restarted")
    company.tick()
    assert company.complaints() == {}


def test_memory_that_slurm_enforces_is_told_by_the_next_tick(cron_yard: MakeYard) -> None:
    """Its runner saw a process that was killed, and no more: the tick asks Slurm before it tells anything."""
    yard = cron_yard("slurm", eager=False, cgroup_memory=True, accounting=True)
    company = Company(yard, {"memory": endings_on_slurm.out_of_slurms_memory})
    company.hand_over(["memory"])
    company.await_known(["memory"])
    company.tick()
    assert company.complaints() == {}
