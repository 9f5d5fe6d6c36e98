"""Metrics of a run as Python values. All values are read from the files themselves, so that the yard only has to send
them, however many there are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from runyard.client.logs import Log
from runyard.client.session import Session
from runyard.model import metrics
from runyard.model.metrics import FILE, Reported
from runyard.model.series import Table

_WORDS = ("nan", "inf", "-inf")


def summed_up(session: Session, run: int) -> dict[str, Any]:
    """The yard may still be reading the file during the request."""
    while not (answer := session.call("GET", f"/runs/{run}/metrics"))["complete"]:
        pass
    return dict(answer)


def table(session: Session, run: int, attempts: int, names: Collection[str] = ()) -> Table:
    """Of these names, or of all, from the first attempt to the last."""
    found = Table()
    wanted = {metrics.name_of(name) for name in names}
    for attempt in range(1, attempts + 1):
        for reported in _reports(Log(client=session, run=run, attempt=attempt, file=FILE)):
            for point in reported.points:
                if not wanted or point.name in wanted:
                    found.add(point)
    return found


def frame(found: Table) -> Any:
    rows = list(found.rows())
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows, columns=found.columns())


def sample(point: Sequence[Any]) -> tuple[float | None, float, float]:
    step, at, value = point
    return step, at, metrics.from_json(value)


def numbers(summary: Mapping[str, Any]) -> dict[str, Any]:
    return {name: float(value) if value in _WORDS else value for name, value in summary.items()}


def _reports(log: Log) -> Iterator[Reported]:
    """The values in the file so far."""
    rest = b""
    for chunk in log.read():
        rest += chunk
        end = metrics.whole(rest)
        yield from metrics.slices(rest[:end])
        rest = rest[end:]
    yield metrics.parse(rest)
