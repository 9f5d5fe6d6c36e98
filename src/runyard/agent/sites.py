"""Build the agent of a site from the site's description."""

from __future__ import annotations

import functools
import threading
from pathlib import Path
from typing import Any, Protocol

from runyard import errors, home, kinds
from runyard.agent.agent import Agent
from runyard.agent.bring.web_files import WebFetcher
from runyard.agent.clean.disks import Room
from runyard.agent.errands import Errands
from runyard.agent.identity import Identity, durable_name, of_this_machine
from runyard.agent.link import Link
from runyard.agent.node_agents import Crew
from runyard.backends import capacity, registry
from runyard.backends.base import Backend
from runyard.backends.ssh import SshBackend
from runyard.hosts.base import Host
from runyard.hosts.ssh import SshHost
from runyard.model import disk_reserve
from runyard.model.nodes import Limits
from runyard.model.resources import Capacity
from runyard.model.site import LOCAL, PLACE_OPTIONS, SSH, SiteSpec
from runyard.settings import Settings

_OF_THE_HOST = frozenset({*PLACE_OPTIONS, "ssh_config"})
_OWN_WORDS = frozenset(kinds.BUILT_IN[kinds.DIALECTS])  # kinds whose options only their backends know


class Server(Protocol):
    """The process side of a site: an agent, or one for each of its nodes."""

    name: str

    @property
    def stale(self) -> bool: ...
    def tick(self) -> None: ...
    def next_due(self, *, following: bool = True) -> float: ...
    def run_forever(self, stop: threading.Event) -> None: ...
    def close(self) -> None: ...


def build(link: Link, name: str, described: SiteSpec, loaded: Settings, errands: Errands | None = None) -> Server:
    """Raises ConfigError if the site's description cannot be used. The server closes the link."""
    if described.kind == SSH:
        make = functools.partial(_build_for_node, link, name, described, loaded, errands)
        return Crew(link, {node: functools.partial(make, node) for node in described.nodes()})
    own, root = own_directory(name, described, loaded), f"{_directory(name, described, loaded)}/runs"
    serving = backend(name, described, loaded)
    try:
        total = capacity.of_backend(serving, described.kind, lambda: _of_this_machine(loaded))
    except BaseException:
        serving.close()
        raise
    who = of_this_machine(name if total.elastic else durable_name(own), loaded.node, loaded.labels, _limits(loaded))
    return Agent(
        link, serving, own, name, total, errands=errands, described=described, root=root, identity=who,
        room=_room(described, loaded), fetcher=_fetcher(loaded),
    )  # fmt: skip


def backend(name: str, described: SiteSpec, loaded: Settings) -> Backend:
    """The backend of a whole site; nodes of kind `ssh` have one each: see `node_backend`."""
    kind, directory = registry.load(described.kind), _directory(name, described, loaded)
    return kind.build(directory, _options(described, loaded), _host(name, described, loaded))


def check(name: str, described: SiteSpec, loaded: Settings) -> None:
    """Raises ConfigError for a description that no agent could use, without contacting the site."""
    if described.kind in _OWN_WORDS:
        registry.load(described.kind).build(_directory(name, described, loaded), _options(described, loaded))


def node_backend(name: str, described: SiteSpec, loaded: Settings, node: str) -> SshBackend:
    """The backend of one node of a site of kind `ssh`."""
    python = described.node_option(node, "python") or described.python or "python3"
    config = described.node_option(node, "ssh_config") or None
    spool = _node_directory(name, loaded, node) / "spool"
    host = SshHost([described.nodes()[node]], spool, python=python, config=config, standing=True)
    return SshBackend.build(_directory(name, described, loaded), {"node": node}, host)


def own_directory(name: str, described: SiteSpec, loaded: Settings) -> Path:
    """The agent's own directory, on the machine it runs on."""
    return loaded.site_dir(name) if described.ssh else _directory(name, described, loaded)


def _build_for_node(
    link: Link, name: str, described: SiteSpec, loaded: Settings, errands: Errands | None, node: str
) -> Agent:
    """Raises Unreachable if the node does not answer."""
    serving = node_backend(name, described, loaded, node)
    try:
        facts = serving.facts()
        total = capacity.of_node(described, node, facts)
    except BaseException:
        serving.close()
        raise
    return Agent(
        link, serving, _node_directory(name, loaded, node), name, total, errands=errands, described=described,
        root=f"{_directory(name, described, loaded)}/runs", lent=True,
        identity=Identity(
            name=node, node=node, boot_id=facts.boot_id, labels=described.labels_of(node), limits=_limits(loaded)
        ),
        room=_room(described, loaded, node), fetcher=_fetcher(loaded),
    )  # fmt: skip


def _limits(loaded: Settings) -> Limits:
    return Limits(projects=tuple(loaded.only_projects), users=tuple(loaded.only_users))


def _room(described: SiteSpec, loaded: Settings, node: str = "") -> Room:
    """The site's options override the settings of the agent."""
    said = described.node_option(node, "disk_reserve") or loaded.disk_reserve
    mine = loaded.scratch if described.kind == LOCAL else ""
    return Room(scratch=described.node_option(node, "scratch") or mine, reserve=disk_reserve.parse(said))


def _fetcher(loaded: Settings) -> WebFetcher:
    return WebFetcher(secrets=loaded.secrets, limit=loaded.input_limit, ca_file=loaded.ca_file)


def _node_directory(name: str, loaded: Settings, node: str) -> Path:
    return loaded.site_dir(name) / "nodes" / node


def _directory(name: str, described: SiteSpec, loaded: Settings) -> Path:
    if described.dir:
        return Path(described.dir)
    if described.ssh:
        raise errors.ConfigError(f"site {name!r} is reached by ssh and has no directory", "name one with --dir")
    return loaded.site_dir(name)


def _host(name: str, described: SiteSpec, loaded: Settings) -> Host | None:
    if not described.ssh:
        return None
    config = described.options.get("ssh_config")
    return SshHost(described.ssh, loaded.site_dir(name) / "spool", python=described.python or "python3", config=config)


def _options(described: SiteSpec, loaded: Settings) -> dict[str, Any]:
    if described.kind == LOCAL:  # where no daemon is allowed, no other process is left behind either
        zygote = "yes" if home.has_daemon(loaded) else "no"
        return {"python": described.python or loaded.python, "zygote": zygote}
    options = {key: value for key, value in described.options.items() if key not in _OF_THE_HOST}
    return {**options, **({"python": described.python} if described.python else {})}


def _of_this_machine(loaded: Settings) -> Capacity:
    return capacity.of_this_machine(loaded.cpus, loaded.memory, loaded.gpus)
