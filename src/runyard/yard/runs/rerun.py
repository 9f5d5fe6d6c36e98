"""Reruns. All inputs of the first run are checked again: nothing is assumed to still exist."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from runyard import errors
from runyard.model import rerun
from runyard.model.rerun import Changes
from runyard.model.roles import Caller
from runyard.model.spec import RunSpec
from runyard.store import Store, runs
from runyard.yard.blobs import YardBlobs
from runyard.yard.runs import submit
from runyard.yard.runs.lookup import no_run
from runyard.yard.runs.submit import Handed, Submitted, Submitter
from runyard.yard.runs.upload_check import UploadCheck

Accept = Callable[[Handed], "Future[list[Submitted]]"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    runs: Future[list[Submitted]]
    notes: list[list[str]]  # of each: what of it cannot be as it was


class Reruns:
    def __init__(self, store: Store, blobs: YardBlobs, accept: Accept) -> None:
        self._store, self._blobs, self._accept = store, blobs, accept

    def start(self, caller: Caller, ids: Sequence[int], changes: Changes) -> Started:
        """All of them or none, as plain runs of the caller. Raises NotFound, InvalidInput, and Conflict for one whose
        code, data or environment no longer exists."""
        specs = self._specs(ids, changes)
        brought = UploadCheck(self._blobs)  # one that remembers nothing
        for run_id, spec in zip(ids, specs, strict=True):
            self._check(run_id, spec, brought)
        accepted = self._accept(Handed(source=Submitter(owner=caller.name), specs=specs))
        return Started(runs=accepted, notes=[rerun.notes(spec) for spec in specs])

    def _specs(self, ids: Sequence[int], changes: Changes) -> list[RunSpec]:
        with self._store.read() as connection:
            rows = {row.id: row for row in runs.get_many(connection, ids)}
        missing = next((run_id for run_id in ids if run_id not in rows), None)
        if missing is not None:
            raise no_run(missing)
        return [changes.apply(run_id, RunSpec.parse(json.loads(rows[run_id].spec))) for run_id in ids]

    def _check(self, run_id: int, spec: RunSpec, brought: UploadCheck) -> None:
        try:
            submit.check_inputs(self._blobs, [spec])
            brought.check([spec])
        except errors.InvalidInput as error:
            raise errors.Conflict(
                f"run {run_id} cannot be started again as it was: {error.message}",
                "submit it anew: `runyard submit`",
            ) from None
