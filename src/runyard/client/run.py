"""A run, as the client hands it out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard import errors
from runyard.client.logs import Log
from runyard.client.patience import Patience
from runyard.model.states import FINAL

if TYPE_CHECKING:
    from runyard.client.client import Client

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

    def __init__(self, client: Client, data: Mapping[str, Any]) -> None:
        self._client = client
        self._data = dict(data)

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

    def retry(self) -> Run:
        self._client.call("POST", f"/runs/{self.id}/retry")
        self._data = {"id": self.id}
        return self

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
