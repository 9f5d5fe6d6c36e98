"""A sweep, as the client returns it: one command, many configurations, each repeated."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runyard import errors
from runyard.client import transport
from runyard.client.retries import Patience
from runyard.client.run import Run, iter_runs
from runyard.client.session import Session
from runyard.model.states import FINAL
from runyard.model.template import flat

PAGE = 1000
FIRST_PAUSE = 0.1  # seconds between two looks, while it is young
LONGEST_PAUSE = 2.0
FAILED = ("failed",)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One configuration of a sweep, and the result of its repetitions: their mean with its 95 % interval."""

    number: int
    params: dict[str, Any]
    state: str
    value: float | None  # of the objective; None: no repetition has one yet
    low: float | None
    high: float | None
    n: int  # how many repetitions the value is the mean of
    runs: tuple[dict[str, Any], ...]  # {id, rep, seed, state, reason, value, step}

    @classmethod
    def from_json(cls, view: Mapping[str, Any]) -> Trial:
        numbers = {name: number(view.get(name)) for name in ("value", "low", "high")}
        runs = tuple({**run, "value": number(run.get("value"))} for run in view["runs"])
        return cls(number=view["number"], params=view["params"], state=view["state"], n=view["n"], runs=runs, **numbers)

    @property
    def reached(self) -> tuple[float, float] | None:
        """What its runs last reported, whether they have ended or not: the mean, and the step that all have reached."""
        seen = [run for run in self.runs if run["value"] is not None and run["step"] is not None]
        if not seen:
            return None
        return sum(run["value"] for run in seen) / len(seen), min(run["step"] for run in seen)

    def row(self) -> dict[str, Any]:
        """As one line of a table: the parameters by their dotted names between its number and its value."""
        values = {"value": self.value, "low": self.low, "high": self.high, "n": self.n, "state": self.state}
        return {"trial": self.number, **apart(flat(self.params), values), **values}

    def run_rows(self) -> list[dict[str, Any]]:
        """The same, one line for each of its runs."""
        return [self._run_row(run) for run in self.runs]

    def _run_row(self, run: Mapping[str, Any]) -> dict[str, Any]:
        ends = {name: run.get(name) for name in ("value", "step", "state", "reason")}
        starts = {"run": run["id"], "trial": self.number, "rep": run["rep"], "seed": run["seed"]}
        return {**starts, **apart(flat(self.params), {**starts, **ends}), **ends}


class Sweep:
    """One sweep of a yard. Every field is an attribute, as it was when it was last read: see `refresh`."""

    def __init__(self, client: Session, data: Mapping[str, Any], submitted: Mapping[str, Any] | None = None) -> None:
        self._client = client
        self._data = dict(data)
        self.submitted = dict(submitted or {})  # of the sweep just submitted: created, reused, retried, differs

    def __repr__(self) -> str:
        return f"<Sweep {self.label} {self._data.get('state', 'not read yet')}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.data[name]
        except KeyError:
            raise AttributeError(f"a sweep has no field {name!r}") from None

    @property
    def id(self) -> int:
        return int(self._data["id"])

    @property
    def label(self) -> str:
        """Its number in the form `S1`."""
        return f"S{self.id}"

    @property
    def data(self) -> dict[str, Any]:
        """All fields, as plain JSON values."""
        if "state" not in self._data:  # only the number is known yet
            self.refresh()
        return self._data

    @property
    def final(self) -> bool:
        return self.data["state"] in FINAL

    def refresh(self) -> Sweep:
        self._data = self._client.call("GET", f"/sweeps/{self.id}")
        return self

    def wait(self, timeout: float | None = None) -> Sweep:
        """Return when all its runs have ended; TimeoutError when `timeout` seconds have passed before."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for _ in self.looks():
            if deadline is not None and not self.final and time.monotonic() >= deadline:
                raise TimeoutError(f"sweep {self.label} is still {self.state} after {timeout:g} s")
        return self

    def looks(self, longest_pause: float = LONGEST_PAUSE) -> Iterator[Sweep]:
        """This sweep, read again and again until it has ended; retries while the yard restarts."""
        patience, pause = Patience(), FIRST_PAUSE
        while True:
            try:
                self.refresh()
                patience.met()
            except errors.YardUnreachable as error:
                patience.endure(error)
                continue
            yield self
            if self.final:
                return
            time.sleep(pause)
            pause = min(pause * 1.5, longest_pause)

    def trials(self, **judged: str) -> list[Trial]:
        """All its configurations, in the order of their creation; by another `metric` than its own, with `goal`
        (minimize, maximize) and `at` (last, best)."""
        return list(self.iter_trials(**judged))

    def iter_trials(self, **judged: str) -> Iterator[Trial]:
        after: int | None = 0
        while after is not None:
            query = {**judged, "after": after, "limit": PAGE}
            answer = self._client.call("GET", f"/sweeps/{self.id}/trials", query=query)
            yield from map(Trial.from_json, answer["trials"])
            after = answer["next"]

    def best(self) -> Trial | None:
        """The configuration with the best mean so far; None before any has reported."""
        view = self.refresh().data
        if not view["objective"]:
            raise errors.Conflict(
                f"sweep {self.label} has no objective", f"name a metric: runyard best {self.label} --metric NAME"
            )
        return Trial.from_json(view["best"]) if view["best"] else None

    def table(self) -> Any:
        """One row for each configuration: a pandas DataFrame if pandas is installed, else a list of mappings."""
        return frame([trial.row() for trial in self.iter_trials()])

    def runs(self) -> list[Run]:
        """All its runs, in the order of its configurations and repetitions."""
        found = iter_runs(self._client, sweep=self.id)
        return sorted(found, key=lambda run: (run.sweep["trial"], run.sweep["rep"]))

    def cancel(self, *, wait: bool = True) -> Sweep:
        """Create no more trials and stop the existing ones; with `wait`, return when no process of them is alive."""
        self._client.call("POST", f"/sweeps/{self.id}/cancel", repeatable=True)
        self._data = {"id": self.id}
        return self.wait() if wait else self

    def retry(self, states: Sequence[str] = FAILED) -> int:
        """Queue its runs in these states again, not those that early stopping ended; how many there were."""
        answer = self._client.call("POST", f"/sweeps/{self.id}/retry", {"states": list(states)})
        self._data = {"id": self.id}
        return int(answer["retried"])

    def decisions(self) -> Iterator[dict[str, Any]]:
        """The yard's decisions, in order, each with the metric rows that it used."""
        after: int | None = 0
        while after is not None:
            answer = self._client.call("GET", f"/sweeps/{self.id}/decisions", query={"after": after, "limit": PAGE})
            yield from answer["decisions"]
            after = answer["next"]


def check_space(document: Mapping[str, Any]) -> None:
    """Raises before anything is read and sent. The yard would refuse it as well, but its error for a NaN would only say
    that it is not JSON. The values are checked in the form in which they are sent: numbers may be those of numpy."""
    from runyard.model.sweep.space import Space

    if document.get("space") is not None:
        Space.parse(json.loads(transport.encode(document["space"])))


def number(value: Any) -> float | None:
    """NaN and the infinities are sent as texts."""
    return None if value is None else float(value)


def frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    try:
        import pandas
    except ImportError:
        return list(rows)
    return pandas.DataFrame(rows)


def apart(params: Mapping[str, Any], taken: Iterable[str]) -> dict[str, Any]:
    """A parameter with the name of one of our columns is shown as `params.state`."""
    names = {*taken, "trial"}
    return {f"params.{name}" if name in names else name: value for name, value in params.items()}
