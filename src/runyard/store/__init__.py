"""The only truth: one code for an SQLite file and PostgreSQL."""

from runyard.store.store import Store, open_store

__all__ = ["Store", "open_store"]
