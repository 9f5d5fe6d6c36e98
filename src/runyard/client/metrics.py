"""What a run has reported, as Python has it. All values come from the files themselves, so that a run of many millions
costs the yard no more than sending them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runyard.client.logs import Log
from runyard.model import metrics
from runyard.model.metrics import FILE, Reported
from runyard.model.series import Table

if TYPE_CHECKING:
    from runyard.client.run import Run

_WORDS = ("nan", "inf", "-inf")


def summed_up(run: Run) -> dict[str, Any]:
    """The yard reads on while it is asked."""
    while not (answer := run._client.call("GET", f"/runs/{run.id}/metrics"))["complete"]:
        pass
    return dict(answer)


def table(run: Run, names: Collection[str] = ()) -> Table:
    """Of these names, or of all."""
    found = Table()
    wanted = {metrics.name_of(name) for name in names}
    for attempt in range(1, run.data["attempt"] + 1):
        for reported in _reports(run._log(attempt, FILE)):
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
    """What the file says, as far as it has come."""
    rest = b""
    for chunk in log.read():
        rest += chunk
        end = metrics.whole(rest)
        yield from metrics.slices(rest[:end])
        rest = rest[end:]
    yield metrics.parse(rest)
