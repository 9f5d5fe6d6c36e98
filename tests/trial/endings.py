"""Every way in which a run ends, on every kind of site, many times over."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.acceptance import endings
from tests.acceptance.witness import until
from tests.labs.clusters import Labs
from tests.trial import plans, sites
from tests.trial.invariants import Submitted, Trial, executed
from tests.trial.report import Row, tried
from tests.trial.sites import ClusterSite, Site

RUNS = 1000
AT_ONCE = 4  # endings that a cluster's yard is asked for side by side
KILLS_ITS_RUNNER = "a runner that is killed"
END_S = 600  # and a second for each run


def run() -> Iterator[Row]:
    labs = Labs()
    try:
        for position, kind in enumerate(sites.KINDS):
            count = RUNS // len(sites.KINDS) + (position < RUNS % len(sites.KINDS))
            yield _tried(kind, count, labs)
    finally:
        labs.close()


def _tried(kind: str, count: int, labs: Labs) -> Row:
    row = Row(name=kind, runs=count)

    def end_all() -> None:
        with sites.opened(kind, labs) as site:
            row.violations += _on_cluster(site, count) if isinstance(site, ClusterSite) else _planned(site, count)
            row.violations += [f"a process is left: {one}" for one in site.end()]

    return tried(row, sites.KINDS[kind], end_all)


def _planned(site: Site, count: int) -> list[str]:
    """Where no scheduler stands between: plans.PLANS, all submitted at once."""
    runs: list[Submitted] = []
    for drawn in plans.drawn(random.Random(count), count, steps=(1, 10)):
        runs.append(site.submit(drawn, runs))
    with contextlib.suppress(AssertionError):  # those that do not end are told of below
        until(lambda: _is_over(site, runs), timeout=END_S + count)
    return Trial(shown=site.shown([run.id for run in runs]), found=site.record.read()).violations(runs)


def _is_over(site: Site, runs: list[Submitted]) -> bool:
    """Cancels on the way what has begun and is to be cancelled."""
    open_runs = site.unfinished([run.id for run in runs])
    begun = {one.run for one in site.record.read().executions}
    ids = [run.id for run in runs if run.plan.cancel and run.id in begun and run.id in open_runs]
    if ids:
        site.ask(lambda client: client.cancel(ids))
    time.sleep(0.5)
    return not open_runs


def _on_cluster(site: ClusterSite, count: int) -> list[str]:
    """The table of the acceptance tests. Endings that edit the site come first, one after the other."""
    names = list(itertools.islice(itertools.cycle(endings.BOTH), count))
    built = [(name, endings.BOTH[name](site.cluster)) for name in names]
    alone = [one for one in built if any(one[1].site)]
    together = [one for one in built if not any(one[1].site)]
    found = [_checked(site, *one) for one in alone]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found += pool.map(lambda one: _checked(site, *one), together)
    return list(itertools.chain.from_iterable(found))


def _checked(site: ClusterSite, name: str, ending: endings.Ending) -> list[str]:
    try:
        shown = endings.told(site.cluster, _recorded(site, ending))
    except Exception as error:
        return [f"({name}): {type(error).__name__}: {error}"]
    if name == KILLS_ITS_RUNNER and endings.on_slurm(site.cluster):
        site.runnerless.add(shown["id"])
    complaint: Any = ending.complaint(shown)
    found = [str(complaint)] if complaint else []
    found += executed(site.record.read(), shown["id"], shown)
    return [f"run {shown['id']} ({name}): {text}" for text in found]


def _recorded(site: ClusterSite, ending: endings.Ending) -> endings.Ending:
    """The same, whose run signs the record, unless it does not come to its command."""
    if ending.outcome[1] in ("launch", "rejected"):
        return ending
    command = site.record.announced(ending.spec["command"])
    return dataclasses.replace(ending, spec={**ending.spec, "command": command})
