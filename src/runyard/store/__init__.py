"""The yard's database: the same code for an SQLite file and PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runyard.store.store import Store, open_store
    from runyard.store.writer import BulkWork

__all__ = ["BulkWork", "Store", "open_store"]

_HOMES = {"BulkWork": "writer", "Store": "store", "open_store": "store"}


def __getattr__(name: str) -> Any:
    """Loaded when they are asked for: questions to the file itself (`file_queries`) need no SQLAlchemy."""
    if name not in _HOMES:
        raise AttributeError(f"module 'runyard.store' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"runyard.store.{_HOMES[name]}"), name)
