"""Results in the mirror: each run's folder appears complete, by one rename, when the run has succeeded."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard import errors
from runyard.blobs import BlobStore
from runyard.model import portable_names
from runyard.model.mirror import Mirror
from runyard.model.states import RunState
from runyard.store import Store, attempts, runs, sweeps
from runyard.store.rows import AnyRow
from runyard.yard import views
from runyard.yard.outgoing.mirror import share
from runyard.yard.outgoing.mirror.loop import MirrorLoop, yard_id
from runyard.yard.outgoing.mirror.share import INCOMING, OF_ONE_FILE
from runyard.yard.runs import settle
from runyard.yard.runs.logs import LogView

CHUNK = 1 << 20

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class MirrorResult:
    """An ended run and its outputs, read in one transaction."""

    row: AnyRow
    tags: list[str]
    place: AnyRow | None  # in a sweep
    tries: list[AnyRow]
    outputs: list[AnyRow]

    @property
    def spec(self) -> dict[str, Any]:
        return views.spec_view(self.row)

    @property
    def configuration(self) -> str:
        return portable_names.configuration(self.spec.get("params", {}), self.row.name)


class MirrorResults(MirrorLoop):
    def __init__(self, mirror: Mirror, store: Store, blob_store: BlobStore) -> None:
        self.kinds = ("succeeded", "failed") if mirror.failed else ("succeeded",)
        self._yard = yard_id(store)
        super().__init__("mirror", mirror, store, blob_store)

    def walk(self, tag: str) -> bool:
        ended = self.endings()
        for event in ended:
            result = self._result(event) if self.wants(event.project) else None
            if result is not None:
                self._publish_or_tell(result, tag)
            self.passed(event.id)
        return len(ended) == self.at_once

    def _result(self, event: AnyRow) -> MirrorResult | None:
        """None if the run continued since: it will end again."""
        with self._store.read() as connection:
            row = runs.get(connection, event.run_id)
            if row is None or row.state != event.kind or row.attempt != event.attempt:
                return None
            return MirrorResult(
                row=row,
                tags=runs.tags_of(connection, [row.id]).get(row.id, []),
                place=sweeps.place_of(connection, row.id),
                tries=attempts.of_run(connection, row.id),
                outputs=attempts.outputs_of(connection, row.id),
            )

    def _publish_or_tell(self, result: MirrorResult, tag: str) -> None:
        """An error of one run does not stop the others."""
        try:
            self._publish(result, tag)
        except errors.NotFound as error:
            self._give_up(result, error.message)
        except OSError as error:
            if error.errno not in OF_ONE_FILE:
                raise
            self._give_up(result, f"{error.filename}: {error.strerror}")

    def _give_up(self, result: MirrorResult, why: str) -> None:
        log.error("run %d is not mirrored: %s", result.row.id, why)
        message = f"its results are not in the mirror: {why}"
        now, row = self._store.now(), result.row
        self._store.write(
            lambda connection: settle.add_event(connection, now, row.id, row.attempt, "note", message)
        ).result()

    # --- one run ------------------------------------------------------------------------------------------------

    def _publish(self, result: MirrorResult, tag: str) -> None:
        row, project = result.row, portable_names.project(result.row.project)
        name = f"{row.id}{tag}"
        has_failed = row.state == RunState.FAILED
        place = self._share.root / project / ("failed" if has_failed else "runs") / result.configuration / name
        if not self._is_published(place, result):
            draft = self._share.folder(project, INCOMING, f"{name}-a{row.attempt}")
            self._fill_or_remove(draft, result)
            self._share.folder(project, place.parent.parent.name, result.configuration)
            self._replace(draft, place, self._share.root / project / INCOMING / f"{name}-old")
        if not has_failed:  # an earlier try of it may have failed
            share.remove(self._share.root / project / "failed" / result.configuration / name)

    def _is_published(self, place: Path, result: MirrorResult) -> bool:
        found = share.read_json(place / "run.json")
        return (found.get("yard"), found.get("attempt")) == (self._yard, result.row.attempt)

    def _replace(self, draft: Path, place: Path, aside: Path) -> None:
        """If the process is killed in between, the next one finds the complete draft and continues."""
        share.remove(aside)
        if place.exists():
            os.rename(place, aside)
        os.rename(draft, place)
        share.remove(aside)

    def _fill_or_remove(self, draft: Path, result: MirrorResult) -> None:
        try:
            self._fill(draft, result)
        except errors.NotFound:  # it will never be whole
            share.remove(draft)
            raise

    def _fill(self, draft: Path, result: MirrorResult) -> None:
        """Files of an earlier try are reused if they are correct."""
        names = portable_names.files(output.path for output in result.outputs)
        for output in result.outputs:
            self._copy(draft, f"outputs/{names[output.path]}", output)
        share.write(draft / "log.txt", self._log(result.row))
        share.write(draft / "params.json", [_encode(result.spec.get("params", {}))])
        share.write(draft / "run.json", [_encode(self._about(result, names))])

    def _copy(self, draft: Path, name: str, output: AnyRow) -> None:
        path = draft / name
        if share.holds(path, output.size, output.digest):
            return
        self._share.folder(*path.parent.relative_to(self._share.root).parts)
        found = share.write(path, self._blob_store.blobs.chunks(output.digest))
        if found != output.digest:
            raise errors.NotFound(f"the yard's copy of {output.path} is damaged: {output.digest}")

    def _log(self, row: AnyRow) -> Iterator[bytes]:
        view, offset = LogView(self._blob_store.files, row.id, range(1, row.attempt + 1), "log", marked=True), 0
        while data := view.read(offset, CHUNK):
            offset += len(data)
            yield data

    def _about(self, result: MirrorResult, names: dict[str, str]) -> dict[str, Any]:
        git = (result.spec.get("code") or {}).get("git")
        return {
            "yard": self._yard,
            **views.run_view(result.row, result.tags, result.place),
            "git": git,
            "attempts": [views.attempt_view(row, self._log_size(row)) for row in result.tries],
            "outputs": [{**views.output_view(row), "file": f"outputs/{names[row.path]}"} for row in result.outputs],
        }

    def _log_size(self, row: AnyRow) -> int:
        return LogView(self._blob_store.files, row.run_id, [row.number], "log", marked=False).size()


def _encode(value: Any) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"
