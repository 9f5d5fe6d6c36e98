"""JSON Schema for values in requests of other programs, written by the yard's administrator.

It supports the keywords of the 2020-12 dialect for plain values, and references inside the same document; nothing is
loaded from elsewhere. An unknown keyword is refused when the schema is added, so that no rule is silently ignored. A
`default` fills in a missing value. (Runyard's own bodies are validated by their declared fields, which are stricter:
5.0 is no integer there.)
"""

from __future__ import annotations

import copy
from typing import Any

from runyard import errors
from runyard.model.schema.grammar import parse
from runyard.model.schema.rules import Mismatch, match
from runyard.model.schema.values import Schema, resolved

__all__ = ["Schema", "check", "parse", "resolved", "with_defaults"]

DEEPEST = 64  # levels at which defaults are filled in; a body has no more


def check(value: Any, schema: Schema, where: str) -> None:
    """Raises InvalidInput with the path of the error, such as `params.lr: 5 is more than the maximum 1`."""
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
