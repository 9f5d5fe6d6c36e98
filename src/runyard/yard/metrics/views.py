"""Metrics of runs as JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from runyard.blobs import AttemptFiles
from runyard.model import metrics
from runyard.model.series import MOST_HELD, Sample, Series, decimate
from runyard.model.wire import AttemptKey
from runyard.store.rows import AnyRow
from runyard.yard.metrics import file_reader

LEAST_HELD = 1000  # of each of many
_NOT_A_NUMBER = float("nan")


def summary_view(summary: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: metrics.to_json(metrics.step_of(value)) if isinstance(value, float) else value
        for name, value in summary.items()
    }


def metric_view(row: AnyRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "count": row.count,
        "first": metrics.to_json(_NOT_A_NUMBER if row.first is None else row.first),
        "last": metrics.to_json(_NOT_A_NUMBER if row.last is None else row.last),
        "minimum": metrics.to_json(row.minimum),
        "maximum": metrics.to_json(row.maximum),
        "last_step": metrics.step_of(row.last_step),
    }


def series(files: AttemptFiles, run_id: int, attempts: int, names: Collection[str]) -> dict[str, list[Sample]]:
    """Of each name all values of all attempts, read from their files."""
    found = {metrics.name_of(name): Series(max(LEAST_HELD, MOST_HELD // len(names))) for name in names}
    for attempt in range(1, attempts + 1):
        for reported in file_reader.everything(files, AttemptKey(run=run_id, attempt=attempt)):
            for point in reported.points:
                if point.name in found:
                    found[point.name].add(point)
    return {name: held.samples() for name, held in found.items()}


def points_view(samples: list[Sample], after_step: float | None, most: int) -> list[list[Any]]:
    if after_step is not None:
        samples = [sample for sample in samples if sample.step is not None and sample.step > after_step]
    return [[step, at, metrics.to_json(value)] for step, at, value in decimate(samples, most)]
