"""Drop boxes that an agent, or the yard itself, looks into."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.agent import sites
from runyard.agent.spool import Spool, SpoolLink, place
from runyard.agent.spool.link import HttpSpoolLink
from runyard.client import locate
from runyard.model.site import SiteSpec
from runyard.settings import Settings

if TYPE_CHECKING:
    from runyard.yard import Yard

LEAVE_S = 5.0  # for one that is in the middle of something


@contextlib.contextmanager
def of_agent(
    site: str, described: SiteSpec, loaded: Settings, target: locate.Target, stop: threading.Event
) -> Iterator[None]:
    """In threads of their own, until the agent stops. Raises ConfigError."""
    if not loaded.spool:
        yield
        return
    with contextlib.closing(HttpSpoolLink(target.url, target.token, target.ca_file, site)) as link:
        spools = _build(loaded, link, sites.own_directory(site, described, loaded))
        threads = [threading.Thread(target=spool, args=(stop,), name=spool.__name__, daemon=True) for spool in spools]
        for thread in threads:
            thread.start()
        yield
        stop.set()
        for thread in threads:
            thread.join(LEAVE_S)


def of_yard(yard: Yard) -> list[Spool]:
    """Raises ConfigError."""
    if not yard.settings.spool:
        return []
    from runyard.server.embedded import DirectSpoolLink

    return _build(yard.settings, DirectSpoolLink(yard, yard.owner()), yard.settings.home)


def _build(loaded: Settings, link: SpoolLink, own: Path) -> list[Spool]:
    boxes = [Path(text).expanduser().absolute() for text in loaded.spool]
    for box in boxes:
        place.check(box)
    return [Spool(box, link, own, loaded) for box in boxes]
