"""A site as it is described once: where its runs execute, and by which words."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runyard import errors
from runyard.model import cache_limit, checkpoints, disk_reserve, fields, keep, nodes, spec, units

LOCAL = "local"  # the kind whose slots are those of the machine that the agent runs on
SSH = "ssh"  # the kind whose logins are nodes, each with slots of its own
YARD, AGENT = "yard", "agent"  # who serves a site: the yard's own process, or agents that dial in


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteSpec:
    """Build it with `parse`, which checks everything that came from outside."""

    kind: str = LOCAL  # the backend: local, slurm, gridengine, ssh
    dir: str | None = None  # a directory that the compute nodes see; None: in the home of whoever serves the site
    ssh: tuple[str, ...] = ()  # login nodes, tried in order, or nodes; none: commands run where the agent runs
    options: dict[str, str] = field(default_factory=dict)  # for the scheduler: account, partition, queue, …; for nodes
    setup: tuple[str, ...] = ()  # shell lines that run on the compute node before each command
    env: dict[str, str] = field(default_factory=dict)  # defaults; a run's own variables win
    python: str | None = None  # interpreter for runners on the compute nodes
    served_by: str = YARD

    @classmethod
    def parse(cls, value: object) -> SiteSpec:
        given = fields.mapping(value, "site", _PARSERS)
        made = cls(**{name: _PARSERS[name](item) for name, item in given.items() if item is not None})
        if made.kind == SSH:
            _check_nodes(made)
        for option, text in made.options.items():
            _check_option(option, text, made)
        return made

    def nodes(self) -> dict[str, str]:
        """Of the kind `ssh`: the login of each node, by the node's name."""
        return {node_name(login): login for login in self.ssh} if self.kind == SSH else {}

    def node_option(self, node: str, name: str) -> str:
        """What is said of this node, or else of all of them; empty when nothing is."""
        return self.options.get(f"{node}.{name}", self.options.get(name, ""))

    def labels_of(self, node: str) -> tuple[str, ...]:
        """Of the kind `ssh`."""
        said = self.node_option(node, "labels")
        return nodes.parse_labels(said.split(","), "labels") if said else ()

    def to_json(self) -> dict[str, Any]:
        shown = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in shown.items()}

    def edited(self, changes: Mapping[str, Any]) -> SiteSpec:
        """Options and variables are changed one by one, and an empty value removes one; the rest is replaced. What was
        said of a node goes with it."""
        given, whole = fields.mapping(changes, "site", _PARSERS), self.to_json()
        if self.kind == SSH and given.get("ssh"):
            gone = self.nodes().keys() - {node_name(login) for login in _logins(given["ssh"])}
            whole["options"] = {key: item for key, item in self.options.items() if key.rpartition(".")[0] not in gone}
        for name, value in given.items():
            if name in ("options", "env") and isinstance(value, Mapping):
                value = {key: item for key, item in {**whole[name], **value}.items() if item != ""}
            whole[name] = value
        return SiteSpec.parse(whole)


def _dir(value: object) -> str:
    path = fields.text(value, "dir", 4096)
    if not path.startswith("/"):
        raise errors.InvalidInput(f"dir: {path!r} is not an absolute path", "start it with /")
    return path.rstrip("/") or "/"


def _logins(value: object) -> tuple[str, ...]:
    """A login that began with a dash would be an option to ssh."""
    logins = fields.texts(value, "ssh", 300)
    for login in logins:
        if not login or login.startswith("-") or any(character.isspace() for character in login):
            raise errors.InvalidInput(f"ssh: {login!r} is not a login", "write it like user@login.example.org")
    return tuple(logins)


def node_name(login: str) -> str:
    """`hoff` of `ada@hoff` and of `ssh://ada@hoff:2222`."""
    return nodes.parse_name(login.removeprefix("ssh://").rpartition("@")[2].partition(":")[0], "ssh")


def _check_nodes(site: SiteSpec) -> None:
    names = [node_name(login) for login in site.ssh]
    if not names:
        raise errors.InvalidInput("a site of kind 'ssh' has nodes", "name each of them with --ssh LOGIN")
    if site.dir is None:
        raise errors.InvalidInput("a site of kind 'ssh' needs a directory on its nodes", "name one with --dir DIR")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        fix = "give each a name of its own in ~/.ssh/config (Host), and use those names"
        raise errors.InvalidInput(f"ssh: two nodes are called {twice!r}", fix)


def _check_option(option: str, text: str, site: SiteSpec) -> None:
    """Those that a scheduler has of its own are known to nobody else."""
    node, _, name = option.rpartition(".") if site.kind == SSH else ("", "", option)
    where, known = f"options.{option}", NODE_OPTIONS if site.kind == SSH else PLACE_OPTIONS
    if node and node not in site.nodes():
        raise errors.InvalidInput(f"{where}: there is no node {node!r}", fields.nearest(node, site.nodes()))
    if name in known:
        known[name](text, where)
    elif site.kind in (LOCAL, SSH):
        raise errors.InvalidInput(f"{where}: there is no such option", fields.nearest(name, known))


def _count(text: str, where: str) -> int:
    if not text.isdecimal():
        raise errors.InvalidInput(f"{where}: {text!r} is not a number", "write it like 8")
    return int(text)


def _path(text: str, where: str) -> str:
    return fields.text(text, where, 4096)


Options = dict[str, Callable[[str, str], Any]]
# What may be said of any site: its agent reads it, and no scheduler is told.
PLACE_OPTIONS: Options = {
    "cache_limit": lambda text, _: cache_limit.parse(text),
    "keep": keep.checked,
    "checkpoint_every": checkpoints.checked,
    "conda_root": _path,
    "scratch": _path,
    "disk_reserve": lambda text, _: disk_reserve.parse(text),
}
# What may be said of the nodes of a site, or of one of them as `node.name`.
NODE_OPTIONS: Options = {
    **PLACE_OPTIONS,
    "cpus": _count,
    "memory": units.parse_size,
    "gpus": _count,
    "python": _path,
    "ssh_config": _path,
    "labels": lambda text, where: nodes.parse_labels(text.split(","), where),
}

_PARSERS: dict[str, Callable[[Any], Any]] = {
    "kind": lambda value: spec.name_text(value, "kind"),
    "dir": _dir,
    "ssh": _logins,
    "options": spec.options_mapping,
    "setup": lambda value: tuple(fields.texts(value, "setup", 10_000)),
    "env": spec.env_mapping,
    "python": lambda value: fields.text(value, "python", 4096),
    "served_by": lambda value: fields.one_of(value, "served_by", (YARD, AGENT)),
}
