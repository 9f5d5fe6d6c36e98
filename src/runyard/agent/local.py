"""The agent of the machine it runs on, for a yard in the same process or elsewhere."""

from __future__ import annotations

import threading

from runyard.agent.agent import Agent
from runyard.agent.link import Link
from runyard.backends import capacity, registry
from runyard.settings import Settings


def build(link: Link, loaded: Settings, site: str = "local") -> Agent:
    """Raises ConfigError when this machine cannot be used as its settings say."""
    directory = loaded.site_dir(site)
    backend = registry.load("local").build(directory, {"python": loaded.python})
    total = capacity.of_this_machine(loaded.cpus, loaded.memory, loaded.gpus)
    return Agent(link, backend, directory, site, total)


def serve(link: Link, loaded: Settings, stop: threading.Event, site: str = "local") -> None:
    """Serve the site until `stop` is set, or until a newer incarnation of this agent takes over."""
    agent = build(link, loaded, site)
    try:
        agent.run_forever(stop)
    finally:
        agent.close()
