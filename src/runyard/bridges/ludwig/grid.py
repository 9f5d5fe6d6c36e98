"""All configurations of a request: every combination, in the order of `param2default`, the first name fastest."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

from runyard import errors
from runyard.bridges.ludwig.values import identity

MOST = 100_000  # configurations


def gen_all_param2vals(param2requests: Mapping[str, Any], param2default: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Names that are not requested have their default."""
    _check_defaults(param2default)
    for name, values in param2requests.items():
        _check_request(name, values, param2default)
    choices = {name: param2requests.get(name, [default]) for name, default in param2default.items()}
    count = math.prod(len(values) for values in choices.values())
    if count > MOST:
        raise errors.InvalidInput(f"param2requests: {count:,} configurations are more than {MOST:,}", "request fewer")
    slowest_first = itertools.product(*reversed(choices.values()))
    return [dict(zip(choices, reversed(values), strict=True)) for values in slowest_first]


def _check_defaults(param2default: Mapping[str, Any]) -> None:
    for name, value in param2default.items():
        if isinstance(value, (list, dict)):
            raise errors.InvalidInput(f"param2default[{name!r}]: it is a {type(value).__name__}", "make it a tuple")


def _check_request(name: str, values: object, param2default: Mapping[str, Any]) -> None:
    where = f"param2requests[{name!r}]"
    if name not in param2default:
        raise errors.InvalidInput(f"{where}: param2default does not have it", "add its default, or correct the name")
    if not isinstance(values, list):
        raise errors.InvalidInput(f"{where}: it is no list", "request a list of values, also where it is only one")
    if not values:
        raise errors.InvalidInput(f"{where}: the list is empty", "request at least one value, or leave the name out")
    if any(isinstance(value, (list, dict)) for value in values):
        raise errors.InvalidInput(f"{where}: there is a list or a dict in it", "use tuples")
    if len({identity(value) for value in values}) < len(values):
        raise errors.InvalidInput(f"{where}: a value is there twice", "request each value once")
