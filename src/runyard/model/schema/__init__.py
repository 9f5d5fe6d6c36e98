"""JSON Schema for values that strangers send, written by whoever administers a yard.

Of the 2020-12 dialect this knows the keywords that say something about plain values, and references inside the same
document; nothing is ever loaded from elsewhere. A keyword it does not know is refused when the schema is written, so
that no rule is silently not kept. A `default` fills in what is missing. (What runyard's own parts say to each other is
checked by runyard.server.check, which is stricter: 5.0 is no integer there.)
"""

from __future__ import annotations

import copy
from typing import Any

from runyard import errors
from runyard.model.schema.grammar import parse
from runyard.model.schema.rules import Mismatch, match
from runyard.model.schema.values import Schema, resolved

__all__ = ["Schema", "check", "parse", "resolved", "with_defaults"]

DEEPEST = 64  # levels that defaults are filled in at; a body has no more


def check(value: Any, schema: Schema, where: str) -> None:
    """Raises InvalidInput with the place of a difference, such as `params.lr: 5 is more than the maximum 1`."""
    try:
        match(value, schema, schema, where)
    except Mismatch as mismatch:
        raise errors.InvalidInput(str(mismatch), mismatch.fix) from None
    except RecursionError:
        raise errors.InvalidInput(f"{where}: the schema refers to itself without end") from None


def with_defaults(value: Any, schema: Schema) -> Any:
    """The value with the defaults of its missing properties, at any depth; the given value is not changed."""
    return _fill(value, schema, schema, 0)


def _fill(value: Any, schema: Schema, root: Schema, depth: int) -> Any:
    schema = resolved(schema, root)
    if not isinstance(schema, dict) or not isinstance(value, dict) or depth > DEEPEST:
        return value
    filled = dict(value)
    for name, part in schema.get("properties", {}).items():
        here = resolved(part, root)
        if name not in filled and isinstance(here, dict) and "default" in here:
            filled[name] = copy.deepcopy(here["default"])
        if name in filled:
            filled[name] = _fill(filled[name], here, root, depth + 1)
    return filled
