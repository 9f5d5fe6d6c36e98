"""Values of parameters: plain ones, and tuples, lists and dicts of them. They are sent as JSON that distinguishes
those."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

from runyard import errors

ADDED = ("param_name", "job_name", "project_path", "save_path")  # to what a person configures, for each job
_PLAIN = (bool, int, float, str)


def clean(configuration: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The user's parameters, without the added names."""
    if not isinstance(configuration, Mapping):
        raise errors.InvalidInput(f"{where}: it is no dict", "each configuration maps names of parameters to values")
    return {
        str(name): _clean(value, f"{where}[{name!r}]") for name, value in configuration.items() if name not in ADDED
    }


def _clean(value: Any, where: str) -> Any:
    if value is None:
        return None
    for kind in _PLAIN:
        if isinstance(value, kind):  # numpy has subclasses of float and str
            return kind(value)
    if isinstance(value, (list, tuple)):
        items = [_clean(item, where) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, Mapping):
        return {_clean(key, where): _clean(item, where) for key, item in value.items()}
    if getattr(value, "shape", None) == () and hasattr(value, "item"):  # a number of numpy's
        return _clean(value.item(), where)
    raise errors.InvalidInput(
        f"{where}: a {type(value).__name__} cannot be sent", "use numbers, texts, booleans, None and tuples of them"
    )


def encode(value: Any) -> Any:
    """For JSON; the program on the node makes the same value of it."""
    if isinstance(value, tuple):
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}
    return [encode(item) for item in value] if isinstance(value, list) else value


def shown(value: Any) -> Any:
    """As readers of YAML see it: tuples are lists."""
    if isinstance(value, dict):
        return {str(key): shown(item) for key, item in value.items()}
    return [shown(item) for item in value] if isinstance(value, (list, tuple)) else value


def told(value: Any) -> Any:
    """As `runyard show` prints it: the same, but JSON has no infinity and no `nan`, so these are texts."""
    if isinstance(value, dict):
        return {str(key): told(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return [told(item) for item in value] if isinstance(value, (list, tuple)) else value


def identity(value: Any) -> Hashable:
    """Equal for equal configurations. Tuples equal lists, because standard YAML has no tuples."""
    if isinstance(value, Mapping):
        return frozenset((str(key), identity(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(identity(item) for item in value)
    return "nan" if isinstance(value, float) and math.isnan(value) else value
