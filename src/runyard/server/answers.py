"""Answers in JSON, and errors in the format of clients."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from runyard import errors

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)  # ASCII: arguments may hold bytes that are no UTF-8


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(_ENCODER.encode(value).encode("ascii"), status, headers, "application/json")


def error_answer(
    error: errors.RunyardError, status: int | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """`status` for the few cases that have no class in runyard.errors."""
    extra = {"WWW-Authenticate": "Bearer"} if isinstance(error, errors.Unauthorized) else {}
    return answer(error.to_json(), status or error.status, {**extra, **(headers or {})})
