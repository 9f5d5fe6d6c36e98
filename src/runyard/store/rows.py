"""The type of a row, whatever its columns."""

from __future__ import annotations

from typing import Any, TypeAlias

from sqlalchemy import Row

AnyRow: TypeAlias = Row[*tuple[Any, ...]]
