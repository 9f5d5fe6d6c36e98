"""Which nodes a run may use, as Slurm's options."""

from __future__ import annotations

import re
from collections.abc import Iterable

from runyard import errors
from runyard.backends.batch.dialect import Order
from runyard.model import nodes


def chosen(order: Order) -> dict[str, str]:
    """Options on top of those that the site, its rules and the run gave. Raises InvalidInput."""
    found: dict[str, str] = {}
    if wanted := _required(order):
        found["nodelist"] = ",".join(wanted)
    if unwanted := [*order.choice.exclude, *_others(order), *order.avoid]:
        given = [order.options["exclude"]] if order.options.get("exclude") else []
        found["exclude"] = ",".join([*given, *dict.fromkeys(unwanted)])
    if order.choice.labels:
        found["constraint"] = "&".join([*_given_constraint(order), *order.choice.labels])
    return found


def _required(order: Order) -> tuple[str, ...]:
    """`--nodelist` names nodes of which a job gets *all*: so it is usable only if the run requests as many."""
    return order.choice.node if len(order.choice.node) == order.resources.nodes else ()


def _others(order: Order) -> list[str]:
    """Any of several nodes: none of the others."""
    if not order.choice.node or _required(order):
        return []
    if not order.facts.nodes:
        raise errors.InvalidInput(
            f"Slurm can be asked for {order.resources.nodes} of {len(order.choice.node)} named nodes only where it "
            "tells which others there are, and it did not",
            "name as many nodes as the run wants, or use --exclude",
        )
    return [node for node in order.facts.nodes if not _is_named(node, order.choice.node)]


def _is_named(node: str, names: Iterable[str]) -> bool:
    return any(nodes.is_called(node, name) for name in names)


def _given_constraint(order: Order) -> list[str]:
    given = order.options.get("constraint", "")
    return [given if re.fullmatch(r"[\w.=-]*", given) else f"({given})"] if given else []
