"""One site of a yard elsewhere, served from this machine: how it is described, and that nobody else serves it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from runyard import errors, locks, machine
from runyard.agent import sites
from runyard.agent.http import HttpLink
from runyard.hosts import local
from runyard.model.site import AGENT, SiteSpec
from runyard.model.wire import Claim, Hello
from runyard.settings import Settings

# A process of another machine that did not renew its hold for so long is not waited for. Should it still be alive, then
# the yard does not listen to it any more: of agents with one name only the newest may speak.
BOUND_S = 90.0
RENEW_S = 20.0
LEASE_S = 300  # of cron: a few minutes may be missed before anybody is told


class OnceLink(HttpLink):
    """For a single tick, which does not wait for news; the next one comes when cron does."""

    def hello(self, hello: Hello) -> tuple[int, list[Claim]]:
        return super().hello(dataclasses.replace(hello, lease=LEASE_S))

    def on_news(self, site: str, callback: Callable[[], None]) -> None:
        pass


def describe(link: HttpLink, site: str, directory: Path | None) -> SiteSpec:
    """As the yard has it; `directory` is the one here, where it is another."""
    described = link.describe(site)
    if described.served_by != AGENT:
        fix = f"on the yard: runyard site edit {site} --served-by agent"
        raise errors.Conflict(f"the site {site!r} is served by the yard itself", fix)
    return described if directory is None else dataclasses.replace(described, dir=os.fspath(directory))


@contextlib.contextmanager
def alone(site: str, described: SiteSpec, loaded: Settings) -> Iterator[None]:
    """Be the only agent with this directory while the context is open; raises SiteInUse."""
    directory = sites.own_directory(site, described, loaded)
    local.make_directory(os.fspath(directory))
    shared = loaded.network_home == "yes" or machine.is_network_filesystem(directory)
    with contextlib.ExitStack() as stack:
        try:
            renew = stack.enter_context(locks.held(directory / "agent.lock", shared=shared, bound=BOUND_S))
        except locks.Held as held:
            message = f"the site {site!r} is served by {held}"
            raise errors.SiteInUse(message, "stop that one, or let it be", elsewhere=held.is_elsewhere) from None
        stack.enter_context(_repeated(renew))
        yield


@contextlib.contextmanager
def _repeated(action: Callable[[], None]) -> Iterator[None]:
    done = threading.Event()

    def repeat() -> None:
        while not done.wait(RENEW_S):
            action()

    thread = threading.Thread(target=repeat, name="agent-hold", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
