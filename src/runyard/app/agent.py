"""An agent: one site of a yard on another machine, served from this machine by one process at a time."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from runyard import errors, locks, machine
from runyard.agent import sites
from runyard.agent.http import HttpLink
from runyard.app import broker, drop_boxes, logs, node_relay
from runyard.client import find_yard
from runyard.hosts import local
from runyard.model.site import AGENT, SiteSpec
from runyard.model.wire import Claim, Hello
from runyard.settings import Settings

# The lock of a process on another machine expires if it is not renewed for so long. If that process is still alive, the
# yard refuses its requests: of agents with the same name only the newest is accepted.
BOUND_S = 90.0
RENEW_S = 20.0
STAND_BY_S = 5.0  # between two tries of an agent that stands by
LEASE_S = 300  # of cron: a few minutes may be missed before the agent counts as silent


Notify = Callable[[str], None]


def serve(
    site: str, directory: Path | None, target: find_yard.Target, loaded: Settings, on_serving: Notify, notify: Notify
) -> None:
    """Until SIGINT or SIGTERM. `on_serving` gets the agent's name, `notify` a sentence for users. Raises Stale if
    another agent has taken over."""
    logs.to_stderr(loaded.log_level)
    link = HttpLink(target.url, target.token, target.ca_file)
    described = describe(link, site, directory)
    with stopped_by_signals() as stop, contextlib.ExitStack() as held:
        if not _take_over(held, lambda: alone(site, described, loaded), stop, notify):
            return
        node_relay.keep(site, described, loaded)
        agent = sites.build(broker.with_tickets(link, site, loaded), site, described, loaded)
        on_serving(agent.name)
        with contextlib.closing(agent), drop_boxes.of_agent(site, described, loaded, target, stop):
            agent.run_forever(stop)
    if agent.stale:
        raise errors.Stale(f"another agent has taken over the site {site!r}", "a cluster needs one: stop one of them")
    notify("the agent has stopped; its runs continue")


def _take_over(
    held: contextlib.ExitStack,
    alone: Callable[[], AbstractContextManager[None]],
    stop: threading.Event,
    notify: Notify,
) -> bool:
    """A second agent stands by until the first has ended. False: it was stopped before."""
    told = False
    while not stop.is_set():
        try:
            held.enter_context(alone())
            return True
        except errors.SiteInUse as error:
            if not told:
                notify(f"{error.message}; standing by")
            told = True
        stop.wait(STAND_BY_S)
    return False


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """A handler may interrupt this very event's `set` or `wait`: so the handlers do nothing, and another thread reads
    the signal from a pipe."""
    stop = threading.Event()
    heard, told = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(told, False)

    def listen() -> None:
        with os.fdopen(heard, "rb", buffering=0) as line:
            line.read(1)
        stop.set()

    threading.Thread(target=listen, name="agent-signals", daemon=True).start()
    descriptor = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    before = [(number, signal.signal(number, lambda *_: None)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield stop
    finally:
        for number, handler in before:
            signal.signal(number, handler)
        signal.set_wakeup_fd(descriptor)
        os.close(told)


class OnceLink(HttpLink):
    """For a single tick, which does not wait for news; cron starts the next one."""

    def hello(self, hello: Hello) -> tuple[int, list[Claim]]:
        return super().hello(dataclasses.replace(hello, lease=LEASE_S))

    def on_news(self, site: str, callback: Callable[[], None]) -> None:
        pass


def describe(link: HttpLink, site: str, directory: Path | None) -> SiteSpec:
    """The yard's description; `directory` overrides its directory."""
    described = link.describe(site)
    if described.served_by != AGENT:
        fix = f"on the yard: runyard site edit {site} --served-by agent"
        raise errors.Conflict(f"the site {site!r} is served by the yard itself", fix)
    return described if directory is None else dataclasses.replace(described, dir=os.fspath(directory))


@contextlib.contextmanager
def alone(site: str, described: SiteSpec, loaded: Settings) -> Iterator[None]:
    """Lock this directory against other agents while the context is open; raises SiteInUse."""
    directory = sites.own_directory(site, described, loaded)
    local.make_directory(os.fspath(directory))
    shared = loaded.network_home == "yes" or machine.is_network_filesystem(directory)
    with contextlib.ExitStack() as stack:
        try:
            renew = stack.enter_context(locks.held(directory / "agent.lock", shared=shared, bound=BOUND_S))
        except locks.Held as held:
            message = f"the site {site!r} is served by {held}"
            raise errors.SiteInUse(
                message, "stop that agent, or let it serve the site", elsewhere=held.is_elsewhere
            ) from None
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
