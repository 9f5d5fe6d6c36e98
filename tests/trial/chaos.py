"""Configurations, runs and faults drawn by a seed: when the faults are over, every run has ended as it really did."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.acceptance.witness import until
from tests.labs.clusters import Labs
from tests.labs.postgres import Server
from tests.trial import faults, plans, sites
from tests.trial.invariants import Submitted, Trial
from tests.trial.report import Row, tried
from tests.trial.sites import Site

SEEDS = 20
FIRST = 1  # seed
PER_SEED = 36  # runs
FAULTS = 8  # of each seed
END_S = 600  # after the last fault, within which every run must end
RETRIES = 2


@dataclass(frozen=True, kw_only=True)
class Configuration:
    seed: int
    site: str
    postgres: bool
    retries: int
    runs: list[plans.Drawn]
    faults: list[faults.Fault]

    @classmethod
    def drawn(cls, seed: int) -> Configuration:
        """Before anything starts, so that the same seed gives the same, however busy the machine is."""
        draw = random.Random(seed)
        site = draw.choice([kind for kind in sites.KINDS if kind != "Grid Engine"])
        postgres, retries = draw.random() < 0.5, draw.choice([0, RETRIES])
        runs = plans.drawn(draw, PER_SEED)
        hits = faults.drawn(draw, FAULTS, site, postgres=postgres)
        return cls(seed=seed, site=site, postgres=postgres, retries=retries, runs=runs, faults=hits)

    def __str__(self) -> str:
        store = "PostgreSQL" if self.postgres else "SQLite"
        return f"{self.site}, {store}, {f'{self.retries} retries' if self.retries else 'no retry'}"


def run() -> Iterator[Row]:
    labs = Labs()
    try:
        for seed in range(FIRST, FIRST + SEEDS):
            yield _tried(Configuration.drawn(seed), labs)
    finally:
        labs.close()


def _tried(configuration: Configuration, labs: Labs) -> Row:
    row = Row(name=f"seed {configuration.seed}", configuration=str(configuration))

    def fight() -> None:
        with _store(configuration) as (server, url), sites.opened(configuration.site, labs, url) as site:
            Battle(configuration, site, server, row).fight()

    return tried(row, [*sites.KINDS[configuration.site], *(["postgresql"] if configuration.postgres else [])], fight)


@contextlib.contextmanager
def _store(configuration: Configuration) -> Iterator[tuple[Server | None, str | None]]:
    if not configuration.postgres:
        yield None, None
        return
    server = Server()
    try:
        server.start()
        with server.database(tables=True) as url:
            yield server, url
    finally:
        server.stop()


class Battle:
    def __init__(self, configuration: Configuration, site: Site, server: Server | None, row: Row) -> None:
        self._configuration, self._site, self._row = configuration, site, row
        self._faults = faults.Faults(site, server)
        self._runs: list[Submitted] = []
        self._cancelled: set[int] = set()

    def fight(self) -> None:
        rounds = len(self._configuration.faults) + 1
        share = -(-len(self._configuration.runs) // rounds)
        self._submit(2 * share)
        for fault in self._configuration.faults:
            self._cancel(len(self._runs) - share)
            if self._faults.hit(fault):
                self._row.faults[fault.kind] += 1
            self._submit(share)
        self._cancel(len(self._runs))
        self._judge()

    def _submit(self, count: int) -> None:
        """The next ones; positions are those of the configuration."""
        for drawn in self._configuration.runs[len(self._runs) :][:count]:
            self._runs.append(self._site.submit(drawn, self._runs, self._configuration.retries))
        self._row.runs = len(self._runs)

    def _cancel(self, first: int) -> None:
        """Those of the first so many that are to be cancelled, begun or not."""
        ids = [run.id for run in self._runs[:first] if run.plan.cancel and run.id not in self._cancelled]
        if ids:
            self._site.ask(lambda client: client.cancel(ids))
            self._cancelled.update(ids)

    def _judge(self) -> None:
        ids = [run.id for run in self._runs]
        with contextlib.suppress(AssertionError):  # those that do not end are told of below
            until(lambda: not self._site.unfinished(ids), timeout=END_S)
        shown, killed = self._site.shown(ids), frozenset(self._faults.killed)
        left = self._site.end()
        trial = Trial(shown=shown, found=self._site.record.read(), killed=killed)
        self._row.violations += trial.violations(self._runs) + [f"a process is left: {one}" for one in left]
