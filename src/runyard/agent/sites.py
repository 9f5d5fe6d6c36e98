"""The agent of a site, made from the site's description."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runyard.agent.agent import Agent
from runyard.agent.errands import Errands
from runyard.agent.link import Link
from runyard.backends import capacity, registry
from runyard.model.resources import Capacity
from runyard.model.site import SiteSpec
from runyard.settings import Settings

MACHINE = "local"  # the kind whose slots are those of the machine that the agent runs on


def build(link: Link, name: str, described: SiteSpec, loaded: Settings, errands: Errands | None = None) -> Agent:
    """Raises ConfigError when the site cannot be used as it is described."""
    directory = Path(described.dir) if described.dir else loaded.site_dir(name)
    backend = registry.load(described.kind).build(directory, _options(described, loaded))
    return Agent(link, backend, directory, name, _total(described, loaded), errands=errands, described=described)


def _options(described: SiteSpec, loaded: Settings) -> dict[str, Any]:
    if described.kind == MACHINE:
        return {"python": described.python or loaded.python}
    return {**described.options, **({"python": described.python} if described.python else {})}


def _total(described: SiteSpec, loaded: Settings) -> Capacity:
    if described.kind == MACHINE:
        return capacity.of_this_machine(loaded.cpus, loaded.memory, loaded.gpus)
    return Capacity(elastic=True)
