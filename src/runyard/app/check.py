"""One tick of a yard's sites, or of one site of a yard on another machine: what `runyard check` does.

At the end of a native job (relay=node) the tick runs on a compute node. It serves that site only, claims and submits
nothing new, because jobs may not be submittable from a node, and ends within the bound of its lock: a node that dies
does not block the others.
"""

from __future__ import annotations

import contextlib
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from runyard import errors, home
from runyard.app import logs
from runyard.app.tick import Tick
from runyard.client import find_yard
from runyard.model.site import SiteSpec
from runyard.settings import Settings
from runyard.store import file_queries
from runyard.version import __version__

AGAIN_S = 0.5  # between two tries, with jitter

Done = dict[str, Any]
NOTHING: Done = {"did": "nothing", "message": ""}


def do(finder: find_yard.Finder, tick: Tick) -> Done:
    level = finder.settings.log_level
    logs.to_stderr(level if level != "info" else "warning")
    if tick.bound is not None:
        signal.setitimer(signal.ITIMER_REAL, tick.bound)  # not handled: the process ends
    if finder.url:
        return _in_turn(tick, lambda: _away(finder, tick), lambda: False)
    return _in_turn(tick, lambda: _here(finder.settings, tick), lambda: _is_settled(finder.settings, tick))


def look(finder: find_yard.Finder, tick: Tick) -> Done:
    """Whether a tick would work from here, as far as can be checked without one."""
    if finder.url:
        from runyard.agent.http import HttpLink

        target = finder.find()
        HttpLink(target.url, target.token, target.ca_file).describe(str(tick.site))
    elif not finder.settings.database.exists():
        raise errors.NotFound(f"there is no yard in {finder.settings.home} as it is seen from here")
    place = finder.url or finder.settings.home
    return {"did": "nothing", "message": f"runyard {__version__} of {sys.executable} reaches {place}"}


def _in_turn(tick: Tick, work: Callable[[], Done], is_settled: Callable[[], bool]) -> Done:
    """Cron starts again in a minute, so its tick leaves the work to the process that holds the lock. A running tick may
    have missed the end of this job: so a node waits, unless its run is settled by then."""
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
    if not _has_work(loaded, tick):
        return NOTHING
    with home.lock(loaded, bound=tick.bound):
        return _work(loaded, tick)


def _has_work(loaded: Settings, tick: Tick) -> bool:
    """Most ticks end here, cheaply."""
    from_outside = _has_visitors(loaded, tick) or _has_bundles(loaded, tick)
    return bool(loaded.store) or from_outside or file_queries.has_open_work(loaded.database)


def _refuse_unknown_site(loaded: Settings, tick: Tick) -> None:
    """Also if there is nothing to do: a wrong name in a crontab would go unnoticed."""
    if tick.site is None or loaded.store or not loaded.database.exists():
        return
    if not file_queries.has_site(loaded.database, tick.site):
        raise _no_site(tick.site)


def _no_site(name: str | None) -> errors.NotFound:
    return errors.NotFound(f"this yard serves no site {name!r}", "list them with `runyard site list`")


def _is_settled(loaded: Settings, tick: Tick) -> bool:
    if tick.ended is None or loaded.store:
        return False
    return not file_queries.is_unsettled(loaded.database, tick.ended.run, tick.ended.attempt)


def _work(loaded: Settings, tick: Tick) -> Done:
    from runyard.app import daemon, parts, site_agents

    with daemon.opened(loaded, at_home=tick.ended is None, passing=True) as yard:
        if tick.site is not None and tick.site not in site_agents.described(yard):
            raise _no_site(tick.site)
        parts.do_once(yard, tick)
        return {"did": "a tick", "message": "", "runs": yard.counts()}


def _has_visitors(loaded: Settings, tick: Tick) -> bool:
    """Compute nodes may not reach other programs."""
    return tick.ended is None and loaded.has_visitors


def _has_bundles(loaded: Settings, tick: Tick) -> bool:
    """Compute nodes may not see drop boxes."""
    if tick.ended is not None or not loaded.spool:
        return False
    from runyard.app import drop_boxes

    return drop_boxes.is_waiting(loaded)


# --- a yard elsewhere -------------------------------------------------------------------------------------------------


def _away(finder: find_yard.Finder, tick: Tick) -> Done:
    from runyard.agent import sites
    from runyard.app import agent
    from runyard.app import tick as ticking

    target, site, loaded = finder.find(), str(tick.site), finder.settings
    with contextlib.closing(agent.OnceLink(target.url, target.token, target.ca_file)) as link:
        spec = agent.describe(link, site, tick.directory)
        with agent.alone(site, spec, loaded), _bundles_handed_in(target, tick, spec, loaded):
            ticking.serve(
                tick, site, spec, loaded, lambda spec, errands: sites.build(link, site, spec, loaded, errands)
            )
    return {"did": "a tick", "message": ""}


@contextlib.contextmanager
def _bundles_handed_in(target: find_yard.Target, tick: Tick, spec: SiteSpec, loaded: Settings) -> Iterator[None]:
    if not _has_bundles(loaded, tick):
        yield
        return
    from runyard.agent.spool.link import HttpSpoolLink
    from runyard.app import drop_boxes

    site = str(tick.site)
    with (
        contextlib.closing(HttpSpoolLink(target.url, target.token, target.ca_file, site)) as link,
        drop_boxes.passing(lambda: drop_boxes.at_site(site, spec, loaded, link)),
    ):
        yield
