"""How an agent speaks to its yard. It only dials out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from runyard.model.wire import AttemptKey, Claim, Hello, SyncRequest, SyncResponse


class Blobs(Protocol):
    """Where a site's cache gets files from."""

    def missing_blobs(self, digests: Iterable[str]) -> set[str]:
        """Those of them that the yard does not have."""
        ...

    def get_blob(self, digest: str, offset: int = 0) -> Iterator[bytes]:
        """The bytes of a file that the yard has, from the offset on, piece by piece; raises NotFound."""
        ...

    def get_blobs(self, digests: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Small files, see `runyard.model.packs`; raises NotFound when the yard lacks one of them."""
        ...


class Link(Blobs, Protocol):
    """Every call blocks until the yard has answered and raises runyard.errors; calls may come from several threads."""

    def hello(self, hello: Hello) -> tuple[int, list[Claim]]:
        """The incarnation to speak with from now on, and the attempts that this agent owned before."""
        ...

    def sync(self, request: SyncRequest) -> SyncResponse:
        """One round. It is answered at once; raises Stale when a newer incarnation has said hello."""
        ...

    def append(
        self, site: str, agent: str, incarnation: int, key: AttemptKey, file: str, offset: int, data: bytes
    ) -> int:
        """Bytes of a file that only grows. Returns the size that the yard holds now, which is where to go on."""
        ...

    def put_blob(self, digest: str, path: Path, movable: bool) -> None:
        """Hand over a file. `movable`: nobody will change it any more, so a yard on the same disk may link it."""
        ...

    def expired_checkpoints(self, site: str, agent: str, incarnation: int, runs: Sequence[int]) -> dict[int, int]:
        """Those of the runs whose checkpoints nobody needs at this place any more, with their newest attempts."""
        ...

    def on_news(self, site: str, callback: Callable[[], None]) -> None:
        """Call back, from any thread, when there may be work or a stop order. A lost hint costs time, nothing else."""
        ...

    def close(self) -> None: ...
