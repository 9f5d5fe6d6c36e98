"""A link to the yard with a message broker, whose tickets announce work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from runyard.agent.link import Link
from runyard.model.wire import AttemptKey, Claim, Hello, SyncRequest, SyncResponse


class Tickets(Protocol):
    """The interface of `runyard.broker.tickets.Taker`."""

    def on_news(self, callback: Callable[[], None]) -> None: ...
    def offer(self, free: int) -> None: ...
    def take(self) -> list[Any]: ...
    def redeemed(self, tickets: Iterable[Any]) -> None: ...
    def give_back(self, tickets: Iterable[Any]) -> None: ...
    def close(self) -> None: ...


class TicketLink:
    """Every sync redeems the tickets received before it, and its answer tells how many more can be used.

    Without an answer of the yard none can: the agent would hold them until the broker requeues them.
    """

    def __init__(self, link: Link, tickets: Tickets) -> None:
        self._link, self._tickets = link, tickets

    def sync(self, request: SyncRequest) -> SyncResponse:
        held = self._tickets.take()
        try:
            answer = self._link.sync(request)
        except BaseException:
            self._tickets.give_back(held)
            self._tickets.offer(0)
            raise
        self._tickets.redeemed(held)
        self._tickets.offer(_free_after(request, answer))
        return answer

    def on_news(self, site: str, callback: Callable[[], None]) -> None:
        """The yard's own news too: a stop request is for one agent, and has no ticket."""
        self._tickets.on_news(callback)
        self._link.on_news(site, callback)

    def close(self) -> None:
        self._tickets.close()
        self._link.close()

    def hello(self, hello: Hello) -> tuple[int, list[Claim]]:
        try:
            return self._link.hello(hello)
        except BaseException:
            self._tickets.offer(0)
            raise

    def append(
        self, site: str, agent: str, incarnation: int, key: AttemptKey, file: str, offset: int, data: bytes
    ) -> int:
        return self._link.append(site, agent, incarnation, key, file, offset, data)

    def missing_blobs(self, digests: Iterable[str]) -> set[str]:
        return self._link.missing_blobs(digests)

    def put_blob(self, digest: str, path: Path, movable: bool) -> None:
        self._link.put_blob(digest, path, movable)

    def get_blob(self, digest: str, offset: int = 0) -> Iterator[bytes]:
        return self._link.get_blob(digest, offset)

    def get_blobs(self, digests: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        return self._link.get_blobs(digests)

    def expired_checkpoints(self, site: str, agent: str, incarnation: int, runs: Sequence[int]) -> dict[int, int]:
        return self._link.expired_checkpoints(site, agent, incarnation, runs)


def _free_after(request: SyncRequest, answer: SyncResponse) -> int:
    """Slots that remain after all claims. A site with a queue counts its room."""
    if request.free.elastic:
        return (request.room or 0) - len(answer.claims)
    return request.free.cpus - sum(claim.resources.cpus for claim in answer.claims)


def _proof(link: TicketLink) -> Link:
    return link
