"""`runyard site show`: the nodes of a site and their runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from runyard.cli.show import formats, output
from runyard.model import units
from runyard.model.nodes import Limits

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

GB = 1 << 30

Site = Mapping[str, Any]
Node = Mapping[str, Any]


def draw(console: Console, site: Site, heading: Table) -> None:
    console.print(heading)
    if site["nodes"]:
        console.print()
        console.print(_nodes(site["nodes"]))
    if site["agents"] and not any(node["agent"] for node in site["nodes"]):  # a cluster's nodes have none
        console.print()
        console.print(_agents(site["agents"]))
    held = list(_held(site))
    if held:
        console.print()
        console.print(_runs(held))
    for trouble in dict.fromkeys(place["trouble"] for place in (*site["agents"], *site["nodes"]) if place["trouble"]):
        output.remark(trouble)


def _nodes(nodes: list[Node]) -> Table:
    from runyard.cli.show import tables

    return tables.build(
        (
            tables.Column(title="NODE", value=lambda node: node["name"]),
            tables.Column(title="STATE", value=lambda node: node["state"], coloured=True),
            tables.Column(title="SINCE", value=_since, right=True, boring=("-",)),
            tables.Column(title="CPUS", value=lambda node: _used(node, "cpus"), right=True, boring=("",)),
            tables.Column(title="GPUS", value=lambda node: _used(node, "gpus"), right=True, boring=("", "0/0")),
            tables.Column(title="MEMORY", value=_memory, right=True, boring=("",)),
            tables.Column(title="DISK", value=_disk, right=True, boring=("",)),
            tables.Column(title="CACHE", value=_cache, right=True, boring=("",)),
            tables.Column(title="RUNS", value=lambda node: str(len(node["runs"])), right=True),
            tables.Column(title="WITH", value=_about, flexible=True, wrapped=True, boring=("",)),
        ),
        nodes,
    )


def _agents(agents: list[Any]) -> Table:
    from runyard.cli.show import tables

    return tables.build(
        (
            tables.Column(title="AGENT", value=lambda agent: agent["name"]),
            tables.Column(title="ON", value=lambda agent: agent["node"]),
            tables.Column(title="STATE", value=lambda agent: agent["state"], coloured=True),
            tables.Column(title="SEEN", value=lambda agent: f"{formats.ago(agent['seen_at'])} ago", right=True),
            tables.Column(title="DISK", value=_disk, right=True, boring=("",)),
            tables.Column(title="CACHE", value=_cache, right=True, boring=("",)),
            tables.Column(title="ONLY", value=_limits, flexible=True, boring=("",)),
            tables.Column(title="VERSION", value=lambda agent: agent["version"]),
        ),
        agents,
    )


def _runs(held: list[dict[str, Any]]) -> Table:
    from runyard.cli.show import tables

    return tables.build(
        (
            tables.Column(title="NODE", value=lambda run: run["node"] or "-", boring=("-",)),
            tables.Column(title="ID", value=lambda run: str(run["id"]), right=True),
            tables.Column(title="STATE", value=lambda run: run["state"], coloured=True),
            tables.Column(title="OWNER", value=lambda run: run["owner"]),
            tables.Column(title="PROJECT", value=lambda run: run["project"]),
            tables.Column(title="SINCE", value=lambda run: formats.ago(run["since"]), right=True),
            tables.Column(title="NAME", value=lambda run: formats.one_line(run["name"]), flexible=True, boring=("",)),
        ),
        held,
    )


def _held(site: Site) -> Iterator[dict[str, Any]]:
    """Runs by node; then those that wait in the queue of a cluster."""
    placed = set()
    for node in site["nodes"]:
        for run in node["runs"]:
            placed.add(run["id"])
            yield {**run, "node": node["name"]}
    for run in site["runs"]:
        if run["id"] not in placed:
            yield {**run, "node": None, "since": run["started_at"]}


def _since(node: Node) -> str:
    return formats.ago(node["since"])


def _used(node: Node, kind: str) -> str:
    """Used slots of all."""
    if node["total"] is None:
        return ""
    total, free = (number(node[which][kind]) for which in ("total", "free"))
    return f"{total - free}/{total}"


def _memory(node: Node) -> str:
    if node["total"] is None:
        return ""
    total, free = node["total"]["memory"], node["free"]["memory"]
    return f"{max(0, total - free) / GB:.0f}/{total / GB:.0f}G"


def _disk(node: Node) -> str:
    """Free disk space."""
    return _short(node["disk"]["free"]) if node["disk"] else ""


def _cache(node: Node) -> str:
    """Size of the cache and its limit."""
    disk = node["disk"] or {}
    return f"{_short(disk['cache'])}/{_short(disk['cache_limit'])}" if disk.get("cache") else ""


def _short(size: int) -> str:
    return units.show_size(size).replace(" ", "").removesuffix("B")


def _about(node: Node) -> str:
    """Labels, GPU types, and the projects and users it accepts."""
    gpus = node["total"]["gpus"] if node["total"] else []
    types = ", ".join(dict.fromkeys(gpu["type"] or gpu["uuid"] for gpu in gpus))
    only = _limits(node)
    return "; ".join(filter(None, (" ".join(node["labels"]), types, f"only {only}" if only else "")))


def _limits(node: Node) -> str:
    return Limits.from_json(node["limits"]).describe()


def number(amount: Any) -> int:
    """GPUs are a list, other resources a number."""
    return len(amount) if isinstance(amount, list) else int(amount)
