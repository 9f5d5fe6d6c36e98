"""Drop boxes that an agent, or the yard itself, serves."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from runyard import errors
from runyard.agent import sites
from runyard.agent.spool import Spool, SpoolLink, place
from runyard.agent.spool.link import HttpSpoolLink
from runyard.client import find_yard
from runyard.model.site import SiteSpec
from runyard.settings import Settings

if TYPE_CHECKING:
    from runyard.yard import Yard

LEAVE_S = 5.0  # for a drop box to finish its current step


@contextlib.contextmanager
def of_agent(
    site: str, described: SiteSpec, loaded: Settings, target: find_yard.Target, stop: threading.Event
) -> Iterator[None]:
    """In their own threads, until the agent stops. Raises ConfigError."""
    if not loaded.spool:
        yield
        return
    with contextlib.closing(HttpSpoolLink(target.url, target.token, target.ca_file, site)) as link:
        spools = at_site(site, described, loaded, link)
        threads = [threading.Thread(target=spool, args=(stop,), name=spool.__name__, daemon=True) for spool in spools]
        for thread in threads:
            thread.start()
        yield
        stop.set()
        for thread in threads:
            thread.join(LEAVE_S)


@contextlib.contextmanager
def passing(build: Callable[[], list[Spool]]) -> Iterator[None]:
    """One pass of each, around the block: bundles are submitted first, and their states are written at the end. Runs
    are served despite errors of a drop box, which are raised afterwards."""
    with contextlib.ExitStack() as stack:
        wrong = None
        try:
            for spool in build():
                stack.enter_context(spool.passing())
        except errors.ConfigError as error:
            wrong = error
        yield
        if wrong is not None:
            raise wrong


def is_waiting(loaded: Settings) -> bool:
    """Whether there may be anything to do in a drop box, without opening a yard."""
    return any(_has_entries(box) for box in _boxes(loaded))


def at_site(site: str, described: SiteSpec, loaded: Settings, link: SpoolLink) -> list[Spool]:
    """Drop boxes of an agent of the site. Raises ConfigError."""
    return _build(loaded, link, sites.own_directory(site, described, loaded))


def of_yard(yard: Yard) -> list[Spool]:
    """Raises ConfigError."""
    if not yard.settings.spool:
        return []
    from runyard.server.embedded import DirectSpoolLink

    return _build(yard.settings, DirectSpoolLink(yard, yard.owner()), yard.settings.home)


def _build(loaded: Settings, link: SpoolLink, own: Path) -> list[Spool]:
    boxes = _boxes(loaded)
    for box in boxes:
        place.check(box)
    return [Spool(box, link, own, loaded) for box in boxes]


def _boxes(loaded: Settings) -> list[Path]:
    return [Path(text).expanduser().absolute() for text in loaded.spool]


def _has_entries(box: Path) -> bool:
    try:
        return any(not name.startswith(".") for name in os.listdir(box))
    except OSError:
        return True  # serving it gives a better error
