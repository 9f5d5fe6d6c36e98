"""Logs in the mirror, while they are written: `<project>/logs/<run>.log`."""

from __future__ import annotations

from runyard.blobs import BlobStore
from runyard.model import portable_names
from runyard.model.mirror import Mirror
from runyard.model.wire import AttemptKey
from runyard.store import Store, runs
from runyard.store.rows import AnyRow
from runyard.yard.outgoing.mirror import share
from runyard.yard.outgoing.mirror.loop import MirrorLoop
from runyard.yard.runs.logs import LogView

CHUNK = 1 << 20


class MirrorLogs(MirrorLoop):
    """The size of the file is the position in the log."""

    again_s = 1.0
    kinds = ("succeeded", "failed", "cancelled")

    def __init__(self, mirror: Mirror, store: Store, blob_store: BlobStore) -> None:
        self._seen: dict[AttemptKey, int] = {}  # of runs that go on: bytes that were there at the last look
        super().__init__("mirror-logs", mirror, store, blob_store)

    def walk(self, tag: str) -> bool:
        self._follow(tag)
        ended = self.endings()
        with self._store.read() as connection:
            rows = {row.id: row for row in runs.brief(connection, {event.run_id for event in ended})}
        for row in rows.values():
            if self.wants(row.project):
                self._copy(row, tag)
        if ended:
            self.passed(ended[-1].id)
        return len(ended) == self.at_once

    def _follow(self, tag: str) -> None:
        with self._store.read() as connection:
            rows = [row for row in runs.brief_active(connection) if row.attempt and self.wants(row.project)]
        keys = {AttemptKey(run=row.id, attempt=row.attempt): row for row in rows}
        sizes = self._blob_store.files.sizes([(key, "log") for key in keys])
        for key, row in keys.items():
            if sizes[key, "log"] != self._seen.get(key, 0):
                self._copy(row, tag)
        self._seen = {key: sizes[key, "log"] for key in keys}

    def _copy(self, row: AnyRow, tag: str) -> None:
        """Append the missing bytes. A run without output has no file."""
        view = LogView(self._blob_store.files, row.id, range(1, row.attempt + 1), "log", marked=True)
        folder, path = portable_names.project(row.project), None
        name = f"{row.id}{tag}.log"
        offset = share.size(self._share.root / folder / "logs" / name)
        while data := view.read(offset, CHUNK):
            path = path or self._share.folder(folder, "logs") / name
            share.extend(path, offset, data)
            offset += len(data)
