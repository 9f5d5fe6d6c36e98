"""A link to the yard on which a message broker says when it is worth while to ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from runyard.agent.link import Link
from runyard.model.wire import AttemptKey, Claim, Hello, SyncRequest, SyncResponse


class Tickets(Protocol):
    """What `runyard.broker.tickets.Taker` does."""

    def on_news(self, callback: Callable[[], None]) -> None: ...
    def offer(self, free: int) -> None: ...
    def take(self) -> list[Any]: ...
    def redeemed(self, tickets: Iterable[Any]) -> None: ...
    def give_back(self, tickets: Iterable[Any]) -> None: ...
    def close(self) -> None: ...


class TicketLink:
    """Every sync redeems the tickets that came before it, and its answer tells how many more are of use.

    To an agent whose yard does not answer none is: it would hold them until the broker takes them back.
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
        """The yard's own news too: a stop order is for one agent, and comes with no ticket."""
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
    """Slots that are left when everything claimed has its own. A site with a queue counts its room."""
    if request.free.elastic:
        return (request.room or 0) - len(answer.claims)
    return request.free.cpus - sum(claim.resources.cpus for claim in answer.claims)


def _proof(link: TicketLink) -> Link:
    return link
