"""Results of projects as plain files in a shared directory."""

from __future__ import annotations

from typing import Any

from runyard.blobs import BlobStore
from runyard.loop import Loop
from runyard.settings import Settings
from runyard.store import Store, cursors
from runyard.yard.outgoing.mirror.logs import MirrorLogs
from runyard.yard.outgoing.mirror.loop import cursor_name
from runyard.yard.outgoing.mirror.results import MirrorResults

__all__ = ["loops", "view"]


def loops(settings: Settings, store: Store, blob_store: BlobStore) -> list[Loop]:
    """None without a mirror. Logs have a separate loop: a large result must not delay them."""
    if settings.mirror is None:
        return []
    return [MirrorLogs(settings.mirror, store, blob_store), MirrorResults(settings.mirror, store, blob_store)]


def view(settings: Settings, store: Store) -> dict[str, Any] | None:
    """The directory of the mirror, and the current error, if there is one."""
    if settings.mirror is None:
        return None
    names = [cursor_name(half, settings.mirror) for half in ("mirror", "mirror-logs")]
    with store.read() as connection:
        rows = [cursors.get(connection, name) for name in names]
    troubles = [row.trouble for row in rows if row is not None and row.trouble]
    return {"dir": settings.mirror.dir, "trouble": troubles[0] if troubles else None}
