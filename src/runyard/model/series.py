"""Values of one metric, ordered by step and thinned out for display."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from runyard.model.metrics import MOST_NAMES, Point

TIME = ""  # no metric has this name
MOST_HELD = 1_000_000  # of one metric: of more, only some steps are kept


class Sample(NamedTuple):
    step: float | None
    at: float
    value: float


class Series:
    """Collects points attempt by attempt, as they were written. A repeated step counts once, with the later value, as
    after resuming from a checkpoint. Values without a step follow those with one, in the order of reporting, because a
    clock may be set back in between."""

    def __init__(self, most: int = MOST_HELD) -> None:
        self._most = most
        self._by_step: dict[float, Sample] = {}
        self._stepless: list[Sample] = []
        self._stride = 1  # only steps that are multiples of it are kept
        self._every, self._seen = 1, 0  # and only every n-th value without a step

    def add(self, point: Point) -> None:
        sample = Sample(point.step, point.at, point.value)
        if point.step is None:
            self._add_stepless(sample)
        elif point.step % self._stride == 0 or not float(point.step).is_integer():
            self._by_step[point.step] = sample
            if len(self._by_step) > self._most:
                self._thin()

    def samples(self) -> list[Sample]:
        return [*(self._by_step[step] for step in sorted(self._by_step)), *self._stepless]

    def _add_stepless(self, sample: Sample) -> None:
        if self._seen % self._every == 0:
            self._stepless.append(sample)
        self._seen += 1
        if len(self._stepless) > self._most:
            self._every *= 2
            self._stepless = self._stepless[::2]

    def _thin(self) -> None:
        """By step, so that another attempt leaves out the same ones."""
        while len(self._by_step) > self._most // 2 and self._stride < 1 << 62:
            self._stride *= 2
            self._by_step = {step: sample for step, sample in self._by_step.items() if step % self._stride == 0}


class Table:
    """The metrics of a run as rows, one per step, with a column per metric. It collects points as `Series` does. Values
    that were reported together without a step share a row, too."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}  # in the order in which they were first seen
        self._by_step: dict[float, dict[str, Any]] = {}
        self._stepless: list[dict[str, Any]] = []

    def add(self, point: Point) -> None:
        if point.name not in self.names and len(self.names) == MOST_NAMES:
            return  # it is not stored either, and a column per name could exhaust the memory
        self.names.setdefault(point.name)
        row = self._by_step.setdefault(point.step, {}) if point.step is not None else self._row_at(point)
        row[point.name] = point.value
        row[TIME] = point.at

    def rows(self) -> Iterator[dict[str, Any]]:
        """`{"step": 1, "time": 1763181001.2, "loss": 0.1}`: a metric named `step` or `time` overrides these."""
        for step in sorted(self._by_step):
            yield self._row(step, self._by_step[step])
        for row in self._stepless:
            yield self._row(None, row)

    def __len__(self) -> int:
        return len(self._by_step) + len(self._stepless)

    def columns(self) -> list[str]:
        return list(dict.fromkeys(["step", "time", *self.names]))

    def _row(self, step: float | None, row: dict[str, Any]) -> dict[str, Any]:
        values = {name: value for name, value in row.items() if name != TIME}
        return {"step": step, "time": row[TIME], **values}

    def _row_at(self, point: Point) -> dict[str, Any]:
        newest = self._stepless[-1] if self._stepless else {}
        if newest.get(TIME) != point.at or point.name in newest:
            newest = {}
            self._stepless.append(newest)
        return newest


def decimate(samples: Sequence[Sample], most: int) -> list[Sample]:
    """At most so many samples: the lowest and the highest of each interval, so that no spike is lost."""
    if len(samples) <= most:
        return list(samples)
    if most < 2:
        return list(samples[-most:])
    stretches = most // 2
    edges = [index * len(samples) // stretches for index in range(stretches + 1)]
    return [sample for start, end in itertools.pairwise(edges) for sample in _extremes(samples[start:end])]


def _extremes(samples: Sequence[Sample]) -> Iterable[Sample]:
    """In their order. If all are NaN, that is kept."""
    numbers = [(sample.value, index) for index, sample in enumerate(samples) if sample.value == sample.value]
    if not numbers:
        return samples[:1]
    return [samples[index] for index in sorted({min(numbers)[1], max(numbers)[1]})]
