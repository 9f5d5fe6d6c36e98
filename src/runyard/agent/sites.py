"""The agent of a site, made from the site's description."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runyard import errors, home
from runyard.agent.agent import Agent
from runyard.agent.errands import Errands
from runyard.agent.link import Link
from runyard.backends import capacity, registry
from runyard.backends.base import Backend
from runyard.hosts.base import Host
from runyard.model.resources import Capacity
from runyard.model.site import SiteSpec
from runyard.settings import Settings

_OF_THE_HOST = ("ssh_config",)
MACHINE = "local"  # the kind whose slots are those of the machine that the agent runs on


def build(link: Link, name: str, described: SiteSpec, loaded: Settings, errands: Errands | None = None) -> Agent:
    """Raises ConfigError when the site cannot be used as it is described."""
    own, root = own_directory(name, described, loaded), f"{_directory(name, described, loaded)}/runs"
    serving, total = backend(name, described, loaded), _total(described, loaded)
    return Agent(link, serving, own, name, total, errands=errands, described=described, root=root)


def backend(name: str, described: SiteSpec, loaded: Settings) -> Backend:
    kind, directory = registry.load(described.kind), _directory(name, described, loaded)
    return kind.build(directory, _options(described, loaded), _host(name, described, loaded))


def own_directory(name: str, described: SiteSpec, loaded: Settings) -> Path:
    """What the agent itself keeps, on the machine it runs on."""
    return loaded.site_dir(name) if described.ssh else _directory(name, described, loaded)


def _directory(name: str, described: SiteSpec, loaded: Settings) -> Path:
    if described.dir:
        return Path(described.dir)
    if described.ssh:
        raise errors.ConfigError(f"site {name!r} is reached by ssh and has no directory", "name one with --dir")
    return loaded.site_dir(name)


def _host(name: str, described: SiteSpec, loaded: Settings) -> Host | None:
    if not described.ssh:
        return None
    from runyard.hosts.ssh import SshHost

    config = described.options.get("ssh_config")
    return SshHost(described.ssh, loaded.site_dir(name) / "spool", python=described.python or "python3", config=config)


def _options(described: SiteSpec, loaded: Settings) -> dict[str, Any]:
    if described.kind == MACHINE:  # where no daemon may be, nothing else stays behind either
        zygote = "yes" if home.has_daemon(loaded) else "no"
        return {"python": described.python or loaded.python, "zygote": zygote}
    options = {key: value for key, value in described.options.items() if key not in _OF_THE_HOST}
    return {**options, **({"python": described.python} if described.python else {})}


def _total(described: SiteSpec, loaded: Settings) -> Capacity:
    if described.kind == MACHINE:
        return capacity.of_this_machine(loaded.cpus, loaded.memory, loaded.gpus)
    return Capacity(elastic=True)
