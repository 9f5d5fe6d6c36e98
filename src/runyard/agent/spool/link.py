"""Requests of a drop box's process to the yard, over HTTP or in the yard's own process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from runyard.agent.http import HttpLink

Json = dict[str, Any]


class SpoolLink(Protocol):
    """Every call blocks until the yard has answered, and raises runyard.errors."""

    def hand_in(self, owner: str, key: str, run: Json) -> int:
        """The run's number. The same key always means the same run."""
        ...

    def look(self, ids: Sequence[int]) -> list[Json]: ...

    def read_log(self, run: int, offset: int) -> bytes:
        """A chunk from the offset on; empty at the end."""
        ...

    def outputs(self, run: int) -> list[Json]: ...
    def cancel(self, run: int) -> None: ...
    def missing_blobs(self, digests: Iterable[str]) -> set[str]: ...
    def put_blob(self, digest: str, path: Path, movable: bool) -> None: ...
    def get_blob(self, digest: str, offset: int = 0) -> Iterator[bytes]: ...
    def close(self) -> None: ...


class HttpSpoolLink(HttpLink):
    """With the token of an agent of the site."""

    def __init__(self, url: str, token: str, ca_file: str, site: str) -> None:
        super().__init__(url, token, ca_file)
        self._site = site

    def hand_in(self, owner: str, key: str, run: Json) -> int:
        body = {"owner": owner, "key": key, "run": run}
        return int(self._ask("POST", "/runs", body)["id"])

    def look(self, ids: Sequence[int]) -> list[Json]:
        return list(self._ask("POST", "/look", {"ids": list(ids)})["runs"])

    def read_log(self, run: int, offset: int) -> bytes:
        path, query = f"{_PLACE}/runs/{run}/log", {"site": self._site, "offset": offset}
        with self._transport.open("GET", path, query=query) as answer:
            return answer.read()

    def outputs(self, run: int) -> list[Json]:
        return list(self._ask("GET", f"/runs/{run}/outputs")["outputs"])

    def cancel(self, run: int) -> None:
        self._ask("POST", f"/runs/{run}/cancel")

    def _ask(self, method: str, path: str, body: Json | None = None) -> Any:
        return self._transport.json(method, f"{_PLACE}{path}", body, query={"site": self._site}, repeatable=True)


_PLACE = "/agents/drop-boxes"


def _proof(link: HttpSpoolLink) -> SpoolLink:
    return link
