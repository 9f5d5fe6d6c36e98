"""The description of a site: where and how its runs execute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runyard import errors
from runyard.model import cache_limit, checkpoints, disk_reserve, fields, keep, nodes, spec_values, units
from runyard.model.declaration import Declared, declared, field, read
from runyard.model.json_schema import TEXTS
from runyard.model.resources import SLOTS, Resources
from runyard.model.values import Checked, Choice, Directory, Size, Text

LOCAL = "local"  # the slots are those of the agent's machine
SSH = "ssh"  # each login is a node with its own slots
YARD, AGENT = "yard", "agent"  # which process serves a site: the yard's own, or agents that connect to it


def _logins(value: object, where: str) -> tuple[str, ...]:
    """A login that starts with a dash would be an option of ssh."""
    logins = fields.texts(value, where, 300)
    for login in logins:
        if not login or login.startswith("-") or any(character.isspace() for character in login):
            raise errors.InvalidInput(f"{where}: {login!r} is not a login", "write it like user@login.example.org")
    return tuple(logins)


def _lines(value: object, where: str) -> tuple[str, ...]:
    return tuple(fields.texts(value, where, 10_000))


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteSpec(Declared):
    """Build it with `parse`, which validates untrusted input."""

    place: ClassVar[str] = "site"
    root: ClassVar[bool] = True
    about: ClassVar[str] = "Description of a site."

    kind: str = field(spec_values.NAME, default=LOCAL, help="Its backend: local, slurm, gridengine, ssh")
    dir: str | None = field(
        Directory(), default=None,
        help="Directory visible to the compute nodes (default: in the home of the user who serves the site)",
    )  # fmt: skip
    ssh: tuple[str, ...] = field(
        Checked(_logins, TEXTS), default=(),
        help="Login nodes, tried in order; for kind ssh the nodes themselves; none: commands run beside the agent",
    )  # fmt: skip
    options: dict[str, str] = field(
        spec_values.OPTIONS, make=dict,
        help="For the scheduler: account, partition, queue …; for kind ssh: cpus, node.gpus …",
    )  # fmt: skip
    setup: tuple[str, ...] = field(
        Checked(_lines, TEXTS), default=(), help="Shell lines that run on the compute node before each command"
    )
    env: dict[str, str] = field(spec_values.ENV, make=dict, help="Default variables; the run's own values win")
    python: str | None = field(Text(4096), default=None, help="Interpreter for runners on the compute nodes")
    served_by: str = field(
        Choice((YARD, AGENT)), default=YARD, help="yard: the yard's own process; agent: agents that connect to it"
    )

    @classmethod
    def parse(cls, value: object, where: str = "") -> SiteSpec:
        made = cls(**read(cls, value, where))
        if made.kind == SSH:
            _check_nodes(made)
        for option, text in made.options.items():
            _check_option(option, text, made)
        return made

    def nodes(self) -> dict[str, str]:
        """For kind `ssh`: the login of each node, by the node's name."""
        return {node_name(login): login for login in self.ssh} if self.kind == SSH else {}

    def node_option(self, node: str, name: str) -> str:
        """The option of this node, or else of all nodes; empty if not set."""
        return self.options.get(f"{node}.{name}", self.options.get(name, ""))

    def labels_of(self, node: str) -> tuple[str, ...]:
        """For kind `ssh`."""
        said = self.node_option(node, "labels")
        return nodes.parse_labels(said.split(","), "labels") if said else ()

    def edited(self, changes: Mapping[str, Any]) -> SiteSpec:
        """Options and variables are changed one by one, and an empty value removes one; other fields are replaced. A
        node's own options are removed with it."""
        given, whole = fields.mapping(changes, "site", declared(SiteSpec)), self.to_json()
        if self.kind == SSH and given.get("ssh"):
            gone = self.nodes().keys() - {node_name(login) for login in _logins(given["ssh"], "ssh")}
            whole["options"] = {key: item for key, item in self.options.items() if key.rpartition(".")[0] not in gone}
        for name, value in given.items():
            if name in ("options", "env") and isinstance(value, Mapping):
                value = {key: item for key, item in {**whole[name], **value}.items() if item != ""}
            whole[name] = value
        return SiteSpec.parse(whole)


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
        raise errors.InvalidInput(f"ssh: two nodes have the name {twice!r}", fix)


def _check_option(option: str, text: str, site: SiteSpec) -> None:
    """Options of a scheduler itself are not checked here."""
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
# Options of any site: its agent reads them; they are not passed to a scheduler.
PLACE_OPTIONS: Options = {
    "cache_limit": lambda text, _: cache_limit.parse(text),
    "keep": keep.checked,
    "checkpoint_every": checkpoints.checked,
    "conda_root": _path,
    "scratch": _path,
    "disk_reserve": lambda text, _: disk_reserve.parse(text),
}
# Options of the nodes of a site, or of one node as `node.name`.
NODE_OPTIONS: Options = {
    **PLACE_OPTIONS,
    **{name: units.parse_size if isinstance(declared(Resources)[name].value, Size) else _count for name in SLOTS},
    "python": _path,
    "ssh_config": _path,
    "labels": lambda text, where: nodes.parse_labels(text.split(","), where),
}
