"""A run, as the client hands it out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard import errors
from runyard.client.logs import Log
from runyard.client.patience import Patience
from runyard.model.states import FINAL

if TYPE_CHECKING:
    from runyard.client.client import Client
    from runyard.client.saved import Checkpoint

LONGEST_POLL = 30.0
SITE_S = 60.0  # how long to wait for outputs of a run that goes on


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """One file that a run left in its OUTPUT_DIR."""

    path: str
    size: int
    digest: str
    mode: int = 0o644
    attempt: int | None = None


class Run:
    """One run of a yard. Every field of the run is an attribute, as it was when it was last read: see `refresh`."""

    def __init__(self, client: Client, data: Mapping[str, Any], notes: Sequence[str] | None = None) -> None:
        self._client = client
        self._data = dict(data)
        self.notes = notes  # of one that `rerun` has made: what of it cannot be as it was, for people

    def __repr__(self) -> str:
        return f"<Run {self.id} {self._data.get('state', 'not read yet')}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._data and "attempts" not in self._data:
            self.refresh()
        try:
            return self._data[name]
        except KeyError:
            raise AttributeError(f"a run has no field {name!r}") from None

    @property
    def id(self) -> int:
        return int(self._data["id"])

    @property
    def client(self) -> Client:
        """By which it speaks to its yard."""
        return self._client

    @property
    def data(self) -> dict[str, Any]:
        """All fields, as plain JSON values."""
        if "command" not in self._data:  # only the number is known yet
            self.refresh()
        return self._data

    @property
    def final(self) -> bool:
        return self.data["state"] in FINAL

    def refresh(self) -> Run:
        self._data = self._client.call("GET", f"/runs/{self.id}")
        return self

    def wait(self, timeout: float | None = None) -> Run:
        """Return when the run has ended; TimeoutError when `timeout` seconds have passed before."""
        deadline = None if timeout is None else time.monotonic() + timeout
        patience = Patience()
        while not self._poll(patience, deadline):
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"run {self.id} is still {self.data['state']} after {timeout:g} s")
        return self

    def logs(self, *, attempt: int | None = None, file: str = "log") -> str:
        """The log so far; bytes that are not UTF-8 are replaced."""
        return b"".join(self._log(attempt, file).read()).decode("utf-8", "replace")

    def follow(self, *, attempt: int | None = None, file: str = "log") -> Iterator[bytes]:
        """The log, live, until the run has ended."""
        return self._log(attempt, file).follow()

    def events(self) -> list[dict[str, Any]]:
        return list(self._client.iter_events(self.id))

    def usage(self, last: int = 60) -> list[dict[str, Any]]:
        """The latest samples of cores, threads, memory and GPUs used, oldest first."""
        return list(self._client.call("GET", f"/runs/{self.id}/usage", query={"last": last})["usage"])

    def metrics(self, *names: str) -> Any:
        """What it has reported: a row for each step, with `step`, `time` and a column for each metric (or for those
        that are named). A pandas DataFrame where pandas is installed, else a list of dicts."""
        from runyard.client import metrics

        return metrics.frame(metrics.table(self, names))

    def summary(self) -> dict[str, Any]:
        """What it said of itself in the end: `job.summary(acc=0.9)`."""
        from runyard.client import metrics

        return metrics.numbers(metrics.summed_up(self)["summary"])

    def reported(self) -> list[dict[str, Any]]:
        """For each metric how many values it has, the first, the last, the least and the greatest; as plain JSON, where
        NaN and infinities are texts."""
        from runyard.client import metrics

        return list(metrics.summed_up(self)["metrics"])

    def points(self, *names: str, most: int = 1000) -> dict[str, list[tuple[float | None, float, float]]]:
        """Of each of these metrics at most so many `(step, time, value)`, in the order of their steps."""
        from runyard.client import metrics

        query = {"name": list(names), "max": most}
        found = self._client.call("GET", f"/runs/{self.id}/metrics/points", query=query)["points"]
        return {name: [metrics.sample(point) for point in points] for name, points in found.items()}

    def outputs(self) -> list[Output]:
        """The files that it left; of a run that goes on, those of the last time that somebody wanted to see them."""
        return _outputs(self._client.call("GET", f"/runs/{self.id}/outputs"))

    def current_outputs(self, timeout: float = SITE_S) -> tuple[list[Output], bool]:
        """The files that it has left by now, brought from its site; and False where that did not answer in time."""
        found = self._client.call(
            "POST", f"/runs/{self.id}/outputs", query={"timeout": timeout}, timeout=timeout + LONGEST_POLL,
            repeatable=True,
        )  # fmt: skip
        return _outputs(found), found["current"]

    def fetch(
        self,
        directory: Path | str,
        *,
        outputs: Iterable[Output] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[Path]:
        """Bring the outputs into `directory`: all of them as they are now, or those that are named. Files that are
        there already are not brought again, and a transfer that was cut goes on where it ended."""
        from runyard.client import fetch

        wanted = self.current_outputs()[0] if outputs is None else outputs
        return fetch.bring(self._client, wanted, Path(directory), progress or (lambda size: None))

    def cancel(self, *, wait: bool = True) -> Run:
        """Wish for its end; with `wait`, return when nothing of it runs any more."""
        self._client.call("POST", f"/runs/{self.id}/cancel", repeatable=True)
        self._data = {"id": self.id}
        return self.wait() if wait else self

    def checkpoints(self) -> list[Checkpoint]:
        """What it saved, as far as the yard knows of it and keeps it; oldest first."""
        from runyard.client import saved

        return saved.of_run(self._client, self.id)

    def current_checkpoints(self, timeout: float = SITE_S) -> tuple[list[Checkpoint], bool]:
        """The same with what it has saved by now; and False where its site did not answer in time."""
        from runyard.client import saved

        return saved.current(self._client, self.id, timeout)

    def checkpoint(self, directory: Path | str | None = None) -> Path:
        """The newest that it saved, brought here: a folder that only this checkpoint has, below `directory`."""
        from runyard.client import saved

        found = self.checkpoints() if self.final else self.current_checkpoints()[0]
        newest = saved.within_reach(self.id, found)[-1]
        place = Path(directory or f"run-{self.id}/checkpoints", str(newest.number))
        saved.bring(self._client, saved.contents(self._client, newest), place)
        return place

    def retry(self, *, resume: bool = False, afresh: bool = False) -> Run:
        """Queue it again, to go on from what it saved. `resume`: refused where that is nothing; `afresh`: from the
        beginning, and what it saved is discarded."""
        from runyard.client import saved

        how = saved.word_for(resume=resume, afresh=afresh)
        self._client.call("POST", f"/runs/{self.id}/retry", query=how)
        self._data = {"id": self.id}
        return self

    def rerun(
        self,
        params: Mapping[str, Any] | None = None,
        *,
        seed: int | None = None,
        site: str | None = None,
        python_env: str | None = None,
        wait: bool = False,
    ) -> Run:
        """Start it again as a new run: the same code, data, parameters, seed, resources and site, but for what is said
        here. `python_env="sync"` builds the Python environment that was recorded. The new run's `notes` say what of it
        cannot be the same."""
        changes = {"params": dict(params or {}), "seed": seed, "site": site, "python_env": python_env}
        answer = self._client.call("POST", f"/runs/{self.id}/rerun", changes)
        again = Run(self._client, {"id": answer["id"]}, answer["notes"])
        return again.wait() if wait else again

    def diff(self, other: Run) -> dict[str, Any]:
        """What differs between the two: what was asked for, where it ran and what came of it, as plain JSON values."""
        from runyard.client.compare import compare_runs

        return compare_runs(self._client, self, other).to_json()

    def _log(self, attempt: int | None, file: str) -> Log:
        return Log(client=self._client, run=self.id, attempt=attempt, file=file)

    def _poll(self, patience: Patience, deadline: float | None) -> bool:
        pause = LONGEST_POLL if deadline is None else min(LONGEST_POLL, max(0.0, deadline - time.monotonic()))
        try:
            self._data = self._client.call(
                "GET", f"/runs/{self.id}/wait", query={"timeout": round(pause, 3)}, timeout=pause + LONGEST_POLL
            )
            patience.met()
        except errors.YardUnreachable as error:
            patience.endure(error)
            return False
        return self.final


def _outputs(answer: Mapping[str, Any]) -> list[Output]:
    return [Output(**{name: item[name] for name in Output.__slots__ if name in item}) for item in answer["outputs"]]
