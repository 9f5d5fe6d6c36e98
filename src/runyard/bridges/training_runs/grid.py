"""Groups of run configurations: `"_run_group_type": "grid"` makes every list in a configuration an axis."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runyard import errors
from runyard.model import units

GROUP = "_run_group_type"
GRID = "grid"
MOST = 10_000  # configurations of one group


def configurations(body: Mapping[str, Any], largest: int) -> list[dict[str, Any]]:
    """The run configurations of a body: itself, or all of its group.

    A list at any depth is an axis, its items are values as they are, and the first axis changes fastest. Together
    they may not be larger than `largest` bytes.
    """
    kind = body.get(GROUP)
    if kind is None:
        return [dict(body)]
    if kind != GRID:
        raise errors.InvalidInput(f"{GROUP}: {kind!r} is not known", f"known: {GRID}")
    _check(_extent(body, ""), largest)
    return _expand(body)


def _expand(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{}]
    for name, item in value.items():
        choices = _choices(item)
        found = [{**earlier, name: choice} for choice in choices for earlier in found]
    return found


def _choices(item: Any) -> list[Any]:
    if isinstance(item, Mapping):
        return _expand(item)
    return item if isinstance(item, list) else [item]


@dataclass(frozen=True, slots=True)
class _Extent:
    count: int  # of choices
    size: int  # of all of them together, in bytes of JSON


def _extent(value: Any, path: str) -> _Extent:
    """How many choices there are and how large they all are, before a single one is made."""
    if isinstance(value, Mapping):
        return _product({name: _extent(item, f"{path}.{name}" if path else name) for name, item in value.items()})
    if not isinstance(value, list):
        return _Extent(1, len(json.dumps(value)))
    if not value:
        raise errors.InvalidInput(f"grid: {path} has no values", "name at least one")
    return _Extent(len(value), len(json.dumps(value)))


def _product(parts: Mapping[str, _Extent]) -> _Extent:
    count = math.prod(part.count for part in parts.values())
    own = sum(len(name) + 6 for name in parts)
    return _Extent(count, own * count + sum(part.size * (count // part.count) for part in parts.values()))


def _check(extent: _Extent, largest: int) -> None:
    if extent.count > MOST:
        raise errors.InvalidInput(
            f"grid: it has {extent.count:,} configurations, more than {MOST:,}", "send it in parts, with shorter lists"
        )
    if extent.size > largest:
        size, most = units.show_size(extent.size), units.show_size(largest)
        raise errors.InvalidInput(
            f"grid: its {extent.count:,} configurations make {size}, more than {most}",
            "send it in parts, or raise body_limit in config.toml",
        )
