"""One tick of a yard's sites, or of one site of a yard elsewhere: what `runyard check` does.

At the end of a native job (relay=node) the tick comes from a compute node. It serves the one site, takes and hands over
nothing new, because a node need not be a place to submit from, and ends within a bound that the lock names: a node that
dies does not keep the others waiting.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard import __version__, errors, home
from runyard.cli import output
from runyard.client import locate
from runyard.model.site import SiteSpec
from runyard.model.wire import AttemptKey
from runyard.settings import Settings

if TYPE_CHECKING:
    from runyard.agent.errands import Errands
    from runyard.agent.sites import Server
    from runyard.yard import Yard

    Build = Callable[[SiteSpec, Errands], Server]

NODE_S = 20.0  # for the work of a tick from a node, and for waiting until others are done
LEAVE_S = 30.0  # after which it ends, whatever it does
SOON_S = 0.1  # what is due so soon belongs to the same pass
AGAIN_S = 0.5  # between two tries, more or less

OPEN_RUNS = (  # and what is left of checkpoints that went, long after that
    "SELECT 1 FROM runs WHERE state IN ('queued', 'starting', 'running') "
    "UNION ALL SELECT 1 FROM metric_positions WHERE is_open = 1 "
    "UNION ALL SELECT 1 FROM sweeps WHERE hungry = 1 "
    "UNION ALL SELECT 1 FROM condemned WHERE state <> 'gone' AND since < strftime('%s', 'now') - 7200"
)
Done = dict[str, Any]
NOTHING: Done = {"did": "nothing", "message": ""}


@dataclass(frozen=True, kw_only=True, slots=True)
class Tick:
    site: str | None
    directory: Path | None
    deadline: float  # monotonic
    ended: AttemptKey | None = None  # of which a compute node tells that it is over

    @classmethod
    def build(cls, site: str | None, directory: Path | None, limit: float, ended: str | None) -> Tick:
        if ended is None:
            return cls(site=site, directory=directory, deadline=time.monotonic() + limit)
        return cls(site=site, directory=directory, deadline=time.monotonic() + NODE_S, ended=_key(ended))

    @property
    def bound(self) -> float | None:
        return LEAVE_S if self.ended is not None else None


def do(finder: locate.Finder, tick: Tick) -> Done:
    level = finder.settings.log_level
    output.log_to_stderr(level if level != "info" else "warning")
    if tick.bound is not None:
        signal.setitimer(signal.ITIMER_REAL, tick.bound)  # nobody catches it: the process ends
    if finder.url:
        return _in_turn(tick, lambda: _away(finder, tick), lambda: False)
    return _in_turn(tick, lambda: _here(finder.settings, tick), lambda: _is_settled(finder.settings, tick))


def look(finder: locate.Finder, tick: Tick) -> Done:
    """Whether a tick would work from here, as far as that can be said without one."""
    if finder.url:
        from runyard.agent.http import HttpLink

        target = finder.find()
        HttpLink(target.url, target.token, target.ca_file).describe(str(tick.site))
    elif not finder.settings.database.exists():
        raise errors.NotFound(f"there is no yard in {finder.settings.home} as it is seen from here")
    place = finder.url or finder.settings.home
    return {"did": "nothing", "message": f"runyard {__version__} of {sys.executable} reaches {place}"}


def _in_turn(tick: Tick, work: Callable[[], Done], is_settled: Callable[[], bool]) -> Done:
    """Cron comes again in a minute, so its tick leaves the work to whoever has it. The last end of a cluster may have
    been missed by a tick that is under way: so a node waits, unless others have settled its run by then."""
    while True:
        try:
            return NOTHING if is_settled() else work()
        except errors.InUse as error:
            if tick.ended is None and error.elsewhere:
                raise
            if tick.ended is None or time.monotonic() >= tick.deadline:
                return {"did": "nothing", "message": f"left to others: {error.message}"}
        time.sleep(AGAIN_S * random.uniform(0.5, 1.5))


# --- a yard of this home ----------------------------------------------------------------------------------------------


def _here(loaded: Settings, tick: Tick) -> Done:
    _refuse_unknown_site(loaded, tick)
    if not (loaded.store or _has_visitors(loaded, tick) or _has_bundles(loaded, tick) or _answer(loaded, OPEN_RUNS)):
        return NOTHING
    with home.lock(loaded, bound=tick.bound):
        return _work(loaded, tick)


def _refuse_unknown_site(loaded: Settings, tick: Tick) -> None:
    """Also when there is nothing to do: a crontab with a wrong name would be silent until its day comes."""
    is_asked = tick.site is not None and loaded.database.exists() and not loaded.store
    if is_asked and not _answer(loaded, "SELECT 1 FROM sites WHERE name = ?", tick.site):
        raise _no_site(tick.site)


def _no_site(name: str | None) -> errors.NotFound:
    return errors.NotFound(f"this yard serves no site {name!r}", "list them with `runyard site list`")


def _is_settled(loaded: Settings, tick: Tick) -> bool:
    if tick.ended is None or loaded.store:
        return False
    question = "SELECT 1 FROM attempts WHERE run_id = ? AND number = ? AND state != 'ended'"
    return not _answer(loaded, question, tick.ended.run, tick.ended.attempt)


def _answer(loaded: Settings, question: str, *values: int | str | None) -> bool:
    """Whether there is a row, asked of the file itself: most ticks of most clusters end with this, cheaply."""
    import sqlite3

    if not loaded.database.exists():
        return False
    try:
        with sqlite3.connect(f"{loaded.database.as_uri()}?mode=ro", uri=True, timeout=5) as connection:
            return connection.execute(f"{question} LIMIT 1", values).fetchone() is not None
    except sqlite3.Error:
        return True  # the yard itself says it better


def _work(loaded: Settings, tick: Tick) -> Done:
    from runyard.cli import daemon, serving

    with daemon.opened(loaded, at_home=tick.ended is None, passing=True) as yard:
        served = serving.described(yard)
        if tick.site is not None and tick.site not in served:
            raise _no_site(tick.site)
        with _visited(yard, tick), _bundles_taken(yard, tick):
            wanted = [tick.site] if tick.site is not None else list(served)
            for name in (name for name in wanted if serving.may_serve(yard, name, served[name])):
                _serve(tick, name, served[name], loaded, functools.partial(serving.build, yard, name))
            yard.tick()
            _follow_progress(yard, tick)
            _clear(yard, tick)
        return {"did": "a tick", "message": "", "runs": yard.counts()}


def _follow_progress(yard: Yard, tick: Tick) -> None:
    from runyard.yard.progress import Progress

    progress = Progress(yard)
    if yard.fleet.may(progress.name):
        while progress.tick() and time.monotonic() < tick.deadline:
            pass


def _clear(yard: Yard, tick: Tick) -> None:
    """From a compute node it is not done: there, somebody waits for the end."""
    from runyard.yard.clearing import LATE_S, Clearing

    clearing = Clearing(yard, LATE_S)
    if tick.ended is None and yard.fleet.may(clearing.name):
        clearing.tick()


def _has_visitors(loaded: Settings, tick: Tick) -> bool:
    """From a compute node nobody outside need be reached."""
    return tick.ended is None and loaded.has_visitors


def _has_bundles(loaded: Settings, tick: Tick) -> bool:
    """A compute node need not see drop boxes."""
    if tick.ended is not None or not loaded.spool:
        return False
    from runyard.cli import spools

    return spools.is_waiting(loaded)


def _bundles_taken(yard: Yard, tick: Tick) -> contextlib.AbstractContextManager[None]:
    if not _has_bundles(yard.settings, tick):
        return contextlib.nullcontext()
    from runyard.cli import spools

    return spools.passing(lambda: spools.of_yard(yard))


@contextlib.contextmanager
def _visited(yard: Yard, tick: Tick) -> Iterator[None]:
    """Requests of other programs are taken first, and what became of runs is told at the end."""
    if not _has_visitors(yard.settings, tick):
        yield
        return
    from runyard.cli import brokering, outside

    with contextlib.closing(brokering.Connections()) as connections:
        try:
            visit = outside.Visit(yard, connections, tick.deadline)
        except (errors.BrokerRefused, errors.ConfigError):
            yield  # what runs goes on, whatever is wrong between us and others
            raise
        visit.take_requests()
        yield
        visit.tell()


# --- a yard elsewhere -------------------------------------------------------------------------------------------------


def _away(finder: locate.Finder, tick: Tick) -> Done:
    from runyard.agent import sites
    from runyard.cli import away

    target, site, loaded = finder.find(), str(tick.site), finder.settings
    with contextlib.closing(away.OnceLink(target.url, target.token, target.ca_file)) as link:
        spec = away.describe(link, site, tick.directory)
        with away.alone(site, spec, loaded), _bundles_handed_in(target, tick, spec, loaded):
            _serve(tick, site, spec, loaded, lambda spec, errands: sites.build(link, site, spec, loaded, errands))
    return {"did": "a tick", "message": ""}


@contextlib.contextmanager
def _bundles_handed_in(target: locate.Target, tick: Tick, spec: SiteSpec, loaded: Settings) -> Iterator[None]:
    if not _has_bundles(loaded, tick):
        yield
        return
    from runyard.agent.spool.link import HttpSpoolLink
    from runyard.cli import spools

    site = str(tick.site)
    with (
        contextlib.closing(HttpSpoolLink(target.url, target.token, target.ca_file, site)) as link,
        spools.passing(lambda: spools.at_site(site, spec, loaded, link)),
    ):
        yield


# --- both -------------------------------------------------------------------------------------------------------------


def _serve(tick: Tick, site: str, spec: SiteSpec, loaded: Settings, build: Build) -> None:
    """Until nothing is left to do at this moment, or until the deadline. What runs is not followed: it goes on saying
    more, and meanwhile nobody else would have the home."""
    from runyard.agent.errands import InlineErrands

    with contextlib.closing(build(_prepared(tick, site, spec, loaded), InlineErrands())) as agent:
        agent.tick()
        while not agent.stale and time.monotonic() < tick.deadline:
            due = agent.next_due(following=False)
            if due > time.monotonic() + SOON_S:
                return
            time.sleep(max(0.0, due - time.monotonic()))
            agent.tick()


def _prepared(tick: Tick, site: str, spec: SiteSpec, loaded: Settings) -> SiteSpec:
    if tick.ended is not None:
        return dataclasses.replace(spec, options={**spec.options, "max_jobs": "0"})
    from runyard.cli import node_relay

    node_relay.keep(site, spec, loaded)
    return spec


def _key(directory: str) -> AttemptKey:
    """An attempt's directory ends with the run's number and its own: `…/17/a2`."""
    match = re.fullmatch(r".*/(\d+)/a(\d+)/?", directory)
    if match is None:
        raise errors.InvalidInput(f"--ended: {directory!r} is not an attempt's directory")
    return AttemptKey(run=int(match[1]), attempt=int(match[2]))
