"""Whether any node of some sites could ever take a run; if not, a sentence with the reason. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from runyard import errors
from runyard.model import fields, nodes
from runyard.model.nodes import NodeChoice
from runyard.model.resources import Capacity
from runyard.model.spec import RunSpec
from runyard.store.site_rows import Node
from runyard.yard.placement import fair_share

Sites = Mapping[str, Sequence[Node]]  # each with at least one node


def check(spec: RunSpec, owner: str, sites: Sites) -> None:
    """Raises errors that the user can fix: first names that do not exist, then resources that no node has."""
    everywhere = [node for found in sites.values() for node in found]
    if not any(node.total.elastic for node in everywhere):  # which nodes a cluster has, its scheduler knows
        _check_names(spec.choice, everywhere, _place(sites))
    taking = _taking(spec, owner, everywhere, _place(sites))
    if not any(node.total.shortages(spec.resources) == [] for node in _chosen(spec.choice, taking, _place(sites))):
        raise errors.Unsatisfiable(
            f"no site can ever give {spec.resources.describe()}{_where(spec.choice)}",
            fair_share.nearest(spec.resources, _capacities(spec, sites)),
        )


def _check_names(choice: NodeChoice, known: Iterable[Node], place: str) -> None:
    names = {node.name for node in known}
    for field, asked in (("node", choice.node), ("exclude", choice.exclude)):
        for name in asked:
            if not any(nodes.is_called(node, name) for node in names):
                told = names if "." in name else {node.partition(".")[0] for node in names}
                raise errors.InvalidInput(f"{field}: there is no node {name!r} at {place}", fields.nearest(name, told))


def _taking(spec: RunSpec, owner: str, found: Sequence[Node], place: str) -> list[Node]:
    taking = [node for node in found if node.limits.allow(owner, spec.project)]
    if not taking:
        told = "; ".join(sorted({node.limits.describe() for node in found}))
        raise errors.Unsatisfiable(
            f"{place} takes no runs of {owner} in the project {spec.project}", f"its agents take those of {told}"
        )
    return taking


def _chosen(choice: NodeChoice, found: Sequence[Node], place: str) -> list[Node]:
    chosen = [node for node in found if node.may_run(choice)]
    if not chosen:
        labels = sorted({label for node in found for label in node.labels})
        raise errors.Unsatisfiable(
            f"{place} has no node {choice.describe()}",
            f"labels there: {', '.join(labels) or 'none'}; nodes: {', '.join(sorted(node.name for node in found))}",
        )
    return chosen


def _capacities(spec: RunSpec, sites: Sites) -> dict[str, Capacity]:
    found: dict[str, Capacity] = {}
    for site, members in sites.items():
        for node in members:
            if node.may_run(spec.choice):
                found[f"{node.name} of site {site!r}" if len(members) > 1 else f"site {site!r}"] = node.total
    return found


def _place(sites: Sites) -> str:
    return " or ".join(f"site {name!r}" for name in sorted(sites))


def _where(choice: NodeChoice) -> str:
    return f" {choice.describe()}" if choice else ""
