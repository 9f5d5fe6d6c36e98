"""The link between a yard and an agent in the same process: calls instead of requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from runyard import errors
from runyard.model.roles import Caller
from runyard.model.spec import RunSpec
from runyard.model.wire import AttemptKey, Claim, Hello, SyncRequest, SyncResponse
from runyard.yard import Yard
from runyard.yard.incoming.drop_boxes import ANY_SITE, DropBoxes

LOG_PIECE = 4 << 20  # bytes of a log at once


class DirectLink:
    """Implements `runyard.agent.link.Link` by direct calls of the yard as `caller`."""

    def __init__(self, yard: Yard, caller: Caller) -> None:
        self._yard, self._caller = yard, caller
        self._unlisten: list[Callable[[], None]] = []

    def hello(self, hello: Hello) -> tuple[int, list[Claim]]:
        return self._yard.hello(self._caller, hello).result()

    def sync(self, request: SyncRequest) -> SyncResponse:
        return self._yard.sync(self._caller, request).result()

    def append(
        self, site: str, agent: str, incarnation: int, key: AttemptKey, file: str, offset: int, data: bytes
    ) -> int:
        return self._yard.append(self._caller, site, agent, incarnation, key, file, offset, data)

    def missing_blobs(self, digests: Iterable[str]) -> set[str]:
        return self._yard.blobs.missing(digests)

    def put_blob(self, digest: str, path: Path, movable: bool) -> None:
        self._yard.blobs.adopt(digest, path, link=movable)

    def get_blob(self, digest: str, offset: int = 0) -> Iterator[bytes]:
        return self._yard.blobs.chunks(digest, offset)

    def get_blobs(self, digests: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        for digest in digests:
            yield digest, b"".join(self._yard.blobs.chunks(digest))

    def expired_checkpoints(self, site: str, agent: str, incarnation: int, runs: Sequence[int]) -> dict[int, int]:
        return self._yard.expire_checkpoints(self._caller, site, agent, incarnation, runs).result()

    def on_news(self, site: str, callback: Callable[[], None]) -> None:
        self._unlisten.append(self._yard.hints.listen(f"site:{site}", callback))

    def close(self) -> None:
        for end in self._unlisten:
            end()
        self._unlisten.clear()


class DirectSpoolLink(DirectLink):
    """Implements `runyard.agent.spool.SpoolLink`, for drop boxes that a yard serves itself."""

    def __init__(self, yard: Yard, caller: Caller) -> None:
        super().__init__(yard, caller)
        self._boxes = DropBoxes(yard, caller, ANY_SITE)

    def hand_in(self, owner: str, key: str, run: dict[str, Any]) -> int:
        return self._boxes.submit(owner, key, RunSpec.parse(run)).result()[0].id

    def look(self, ids: Sequence[int]) -> list[dict[str, Any]]:
        return self._boxes.runs(ids)

    def read_log(self, run: int, offset: int) -> bytes:
        return self._boxes.log(run, offset, LOG_PIECE)

    def outputs(self, run: int) -> list[dict[str, Any]]:
        return self._boxes.outputs(run)

    def cancel(self, run: int) -> None:
        outcome = self._boxes.cancel(run).result()[run]
        if isinstance(outcome, errors.RunyardError):
            raise outcome
