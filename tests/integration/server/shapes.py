"""Whether an answer has exactly the shape that the OpenAPI document says."""

from __future__ import annotations

from typing import Any

import jsonschema_rs

from runyard.server.schemas import COMPONENTS, Schema, ref


def check_answer(value: Any, shape: Schema | str) -> None:
    """`shape`: a schema, or the name of a component."""
    schema = ref(shape) if isinstance(shape, str) else shape
    jsonschema_rs.validate({**schema, "components": {"schemas": COMPONENTS}}, value)
