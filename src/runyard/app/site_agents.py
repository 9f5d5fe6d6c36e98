"""The agents of the sites that a yard serves itself: one thread each, following changes of the sites."""

from __future__ import annotations

import functools
import logging
import threading
from dataclasses import dataclass, field

from runyard import errors
from runyard.agent import sites
from runyard.agent.errands import Errands
from runyard.app import node_relay
from runyard.app import tick as ticking
from runyard.app.tick import Tick
from runyard.loop import Loop
from runyard.model.site import LOCAL, YARD, SiteSpec
from runyard.server.embedded import DirectLink
from runyard.yard import Yard
from runyard.yard.agents.sites import SITES_CHANGED

THIS_MACHINE = "local"  # the site of the yard's own machine
RESTART_S = 5.0  # after an agent could not be created

log = logging.getLogger(__name__)


def described(yard: Yard) -> dict[str, SiteSpec]:
    """The sites that this yard's process serves."""
    found = {site["name"]: SiteSpec.parse(site["config"]) for site in yard.sites.all()}
    if yard.settings.local_site == "off":
        found.pop(THIS_MACHINE, None)
    return {name: spec for name, spec in found.items() if spec.served_by == YARD}


def is_of_each(spec: SiteSpec) -> bool:
    """Whether each of several servers serves it with its own machine. All other sites, whose directories may be shared,
    are served by one server at a time."""
    return spec.kind == LOCAL and not spec.dir and not spec.ssh


def serve_once(yard: Yard, tick: Tick) -> None:
    """One tick of the tick's site, or of all."""
    served = described(yard)
    for name in [tick.site] if tick.site is not None else list(served):
        spec = served[name]
        if is_of_each(spec) or yard.fleet.may(_duty(name)):
            ticking.serve(tick, name, spec, yard.settings, functools.partial(build, yard, name))


def _duty(site: str) -> str:
    return f"site-{site}"


def build(yard: Yard, name: str, spec: SiteSpec, errands: Errands | None = None) -> sites.Server:
    """The agent of a site that this yard's process serves."""
    return sites.build(DirectLink(yard, yard.owner()), name, spec, yard.settings, errands)


@dataclass
class _Service:
    """One site and the thread that serves it."""

    spec: SiteSpec
    thread: threading.Thread
    stop: threading.Event = field(default_factory=threading.Event)


class Agents(Loop):
    again_s = 30.0
    by_one = False  # sites take turns one by one

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self._services: dict[str, _Service] = {}
        super().__init__("agents")

    def __call__(self, stop: threading.Event) -> None:
        unlisten = self._yard.hints.listen(SITES_CHANGED, self.ring)
        try:
            super().__call__(stop)
        finally:
            unlisten()
            self._follow({})

    def tick(self) -> bool:
        try:
            self._follow(described(self._yard))
        except errors.YardUnreachable as error:  # of the store: agents continue and retry
            log.warning("changes of sites cannot be read: %s", error)
        return False

    def _follow(self, wanted: dict[str, SiteSpec]) -> None:
        """Stop agents of removed or changed sites, then start missing ones."""
        ending = [name for name, service in self._services.items() if wanted.get(name) != service.spec]
        for name in ending:
            self._services[name].stop.set()
        for name in ending:
            self._services.pop(name).thread.join()
        for name, spec in wanted.items():
            if name not in self._services:
                self._services[name] = self._start(name, spec)

    def _start(self, name: str, spec: SiteSpec) -> _Service:
        stop = threading.Event()
        thread = threading.Thread(target=self._serve, args=(name, spec, stop), name=f"agent-{name}", daemon=True)
        thread.start()
        return _Service(spec=spec, thread=thread, stop=stop)

    def _serve(self, name: str, spec: SiteSpec, stop: threading.Event) -> None:
        """Until it is stopped; after a failure it is started again."""
        served = functools.partial(self._serve_once, name, spec)
        serve = served if is_of_each(spec) else self._yard.fleet.by_one(_duty(name), served)
        while not stop.is_set():
            try:
                serve(stop)
            except errors.RunyardError as error:
                log.error("site %s cannot be served: %s", name, error)
            except Exception:
                log.exception("the agent of site %s failed; it starts again", name)
            stop.wait(RESTART_S)

    def _serve_once(self, name: str, spec: SiteSpec, stop: threading.Event) -> None:
        node_relay.keep(name, spec, self._yard.settings)
        agent = build(self._yard, name, spec)
        try:
            agent.run_forever(stop)
        finally:
            agent.close()
