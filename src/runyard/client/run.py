"""A run, as the client returns it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard import errors
from runyard.client import events, outputs
from runyard.client.logs import Log
from runyard.client.outputs import LONGEST_POLL, Output
from runyard.client.retries import Patience
from runyard.client.session import Session
from runyard.model.states import FINAL

if TYPE_CHECKING:
    from runyard.client.checkpoints import SavedCheckpoint

PAGE = 500
SITE_S = 60.0  # how long to wait for outputs of a running run


class Run:
    """One run of a yard. Every field of the run is an attribute, as it was when it was last read: see `refresh`."""

    def __init__(self, client: Session, data: Mapping[str, Any], notes: Sequence[str] | None = None) -> None:
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
    def client(self) -> Session:
        """The client of its yard."""
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
        return list(events.of_run(self._client, self.id))

    def usage(self, last: int = 60) -> list[dict[str, Any]]:
        """The latest samples of cores, threads, memory and GPUs used, oldest first."""
        return list(self._client.call("GET", f"/runs/{self.id}/usage", query={"last": last})["usage"])

    def metrics(self, *names: str) -> Any:
        """Its metrics: a row for each step, with `step`, `time` and a column for each metric (or for those
        that are named). A pandas DataFrame if pandas is installed, else a list of dicts."""
        from runyard.client import metrics

        return metrics.frame(metrics.table(self._client, self.id, self.data["attempt"], names))

    def summary(self) -> dict[str, Any]:
        """Its final results: `job.summary(acc=0.9)`."""
        from runyard.client import metrics

        return metrics.numbers(metrics.summed_up(self._client, self.id)["summary"])

    def reported(self) -> list[dict[str, Any]]:
        """For each metric the number of values, the first, the last, the minimum and the maximum; as plain JSON, where
        NaN and infinities are texts."""
        from runyard.client import metrics

        return list(metrics.summed_up(self._client, self.id)["metrics"])

    def points(self, *names: str, most: int = 1000) -> dict[str, list[tuple[float | None, float, float]]]:
        """Of each of these metrics at most so many `(step, time, value)`, in the order of their steps."""
        from runyard.client import metrics

        query = {"name": list(names), "max": most}
        found = self._client.call("GET", f"/runs/{self.id}/metrics/points", query=query)["points"]
        return {name: [metrics.sample(point) for point in points] for name, points in found.items()}

    def outputs(self) -> list[Output]:
        """Its outputs; of a running run, those of the last time that they were collected."""
        return outputs.of_run(self._client, self.id)

    def current_outputs(self, timeout: float = SITE_S) -> tuple[list[Output], bool]:
        """Its current outputs, collected from its site; and False if the site did not answer in time."""
        return outputs.current(self._client, self.id, timeout)

    def fetch(
        self,
        directory: Path | str,
        *,
        outputs: Iterable[Output] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[Path]:
        """Fetch the outputs into `directory`: all current ones, or those that are named. Files that exist already are
        not fetched again, and an interrupted transfer continues where it ended."""
        from runyard.client import fetch

        wanted = self.current_outputs()[0] if outputs is None else outputs
        return fetch.bring(self._client, wanted, Path(directory), progress or (lambda size: None))

    def cancel(self, *, wait: bool = True) -> Run:
        """Cancel it; with `wait`, return when no process of it is alive."""
        self._client.call("POST", f"/runs/{self.id}/cancel", repeatable=True)
        self._data = {"id": self.id}
        return self.wait() if wait else self

    def checkpoints(self) -> list[SavedCheckpoint]:
        """Its checkpoints that the yard has, oldest first."""
        from runyard.client import checkpoints

        return checkpoints.of_run(self._client, self.id)

    def current_checkpoints(self, timeout: float = SITE_S) -> tuple[list[SavedCheckpoint], bool]:
        """The same, with its current checkpoint; and False if its site did not answer in time."""
        from runyard.client import checkpoints

        return checkpoints.current(self._client, self.id, timeout)

    def checkpoint(self, directory: Path | str | None = None) -> Path:
        """Fetch its newest checkpoint: into a folder for this checkpoint alone, below `directory`."""
        from runyard.client import checkpoints

        found = self.checkpoints() if self.final else self.current_checkpoints()[0]
        newest = checkpoints.within_reach(self.id, found)[-1]
        place = Path(directory or f"run-{self.id}/checkpoints", str(newest.number))
        checkpoints.bring(self._client, checkpoints.contents(self._client, newest), place)
        return place

    def retry(self, *, resume: bool = False, afresh: bool = False) -> Run:
        """Queue it again, to continue from its checkpoint. `resume`: refused if there is none; `afresh`: discard its
        checkpoints and start from the beginning."""
        from runyard.client import checkpoints

        how = checkpoints.word_for(resume=resume, afresh=afresh)
        self._client.call("POST", f"/runs/{self.id}/retry", query=how)
        self._data = {"id": self.id}
        return self

    def rerun(self, params: Mapping[str, Any] | None = None, *, wait: bool = False, **changes: Any) -> Run:
        """Start it again as a new run: the same code, data, parameters, seed, resources and site, except for
        `changes`, such as `seed=7` or `site="cluster"`. `python_env="sync"` builds the Python environment that was
        recorded. The new run's `notes` say what cannot be the same."""
        answer = self._client.call("POST", f"/runs/{self.id}/rerun", {"params": dict(params or {}), **changes})
        again = Run(self._client, {"id": answer["id"]}, answer["notes"])
        return again.wait() if wait else again

    def diff(self, other: Run) -> dict[str, Any]:
        """The differences between the two runs in inputs, site and results, as plain JSON values."""
        from runyard.client.compare import compare_runs

        return compare_runs(self._client, self.id, other.id).to_json()

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


def iter_runs(session: Session, *, page: int = PAGE, before: int | None = None, **filters: Any) -> Iterator[Run]:
    """All runs that match, newest first, page by page."""
    query = {name: _listed(value) for name, value in filters.items()}
    while True:
        answer = session.call("GET", "/runs", query={**query, "limit": page, "before": before})
        yield from (Run(session, data) for data in answer["runs"])
        before = answer["next"]
        if before is None:
            return


def _listed(value: Any) -> Any:
    """Several values are sent as one, separated by commas."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(str(item) for item in value)
    return value
