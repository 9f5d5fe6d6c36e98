"""Results of projects as plain files in a shared directory, for people who look with `ls`."""

from __future__ import annotations

from typing import Any

from runyard.blobs import BlobStore
from runyard.loop import Loop
from runyard.settings import Settings
from runyard.store import Store, cursors
from runyard.yard.mirror.logs import Logs
from runyard.yard.mirror.publish import Results
from runyard.yard.mirror.walk import cursor_name

__all__ = ["loops", "view"]


def loops(settings: Settings, store: Store, blob_store: BlobStore) -> list[Loop]:
    """None without a mirror. Logs have a loop of their own: a large result must not make them late."""
    if settings.mirror is None:
        return []
    return [Logs(settings.mirror, store, blob_store), Results(settings.mirror, store, blob_store)]


def view(settings: Settings, store: Store) -> dict[str, Any] | None:
    """Where results go, and why they do not arrive there, while they do not."""
    if settings.mirror is None:
        return None
    names = [cursor_name(half, settings.mirror) for half in ("mirror", "mirror-logs")]
    with store.read() as connection:
        rows = [cursors.get(connection, name) for name in names]
    troubles = [row.trouble for row in rows if row is not None and row.trouble]
    return {"dir": settings.mirror.dir, "trouble": troubles[0] if troubles else None}
