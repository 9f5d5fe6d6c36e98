"""The connection of an agent to its yard, opened by the agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from runyard.model.wire import AttemptKey, Claim, Hello, SyncRequest, SyncResponse


class BlobReader(Protocol):
    """The source of files for a site's cache."""

    def missing_blobs(self, digests: Iterable[str]) -> set[str]:
        """The digests that the yard does not have."""
        ...

    def get_blob(self, digest: str, offset: int = 0) -> Iterator[bytes]:
        """The bytes of a file of the yard from the offset on, in chunks; raises NotFound."""
        ...

    def get_blobs(self, digests: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Small files, see `runyard.model.packs`; raises NotFound if the yard lacks one of them."""
        ...


class Link(BlobReader, Protocol):
    """Every call blocks until the yard has answered and raises runyard.errors; calls may come from several threads."""

    def hello(self, hello: Hello) -> tuple[int, list[Claim]]:
        """The new incarnation, and the attempts that this agent owned before."""
        ...

    def sync(self, request: SyncRequest) -> SyncResponse:
        """One round. It is answered at once; raises Stale if a newer incarnation has said hello."""
        ...

    def append(
        self, site: str, agent: str, incarnation: int, key: AttemptKey, file: str, offset: int, data: bytes
    ) -> int:
        """Appends to a growing file. Returns the size that the yard now has, which is the next offset."""
        ...

    def put_blob(self, digest: str, path: Path, movable: bool) -> None:
        """Upload a file. `movable`: it will not change any more, so a yard on the same disk may link it."""
        ...

    def expired_checkpoints(self, site: str, agent: str, incarnation: int, runs: Sequence[int]) -> dict[int, int]:
        """The runs whose checkpoints have expired at this site, with their newest attempts."""
        ...

    def on_news(self, site: str, callback: Callable[[], None]) -> None:
        """Call back, from any thread, when there may be work or a stop order. A lost hint costs time, nothing else."""
        ...

    def close(self) -> None: ...
