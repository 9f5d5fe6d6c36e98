"""The only truth: one code for an SQLite file and PostgreSQL."""

from runyard.store.store import Store, open_store
from runyard.store.writer import Series

__all__ = ["Series", "Store", "open_store"]
