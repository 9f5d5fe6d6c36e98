"""What the routes share: the yard, a few threads for its blocking reads, and the waits that a stop must end."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from runyard.server.authentication import Authenticator
from runyard.server.site_changes import SiteChanges
from runyard.yard import Yard

P = ParamSpec("P")
T = TypeVar("T")

READERS = 4  # SQLite reads take turns on the interpreter anyway; more threads only wait for each other
WRITERS = 4  # uploads wait for the disk here, without blocking readers


class Bell:
    """Rung from any thread, awaited on the event loop."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def ring(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended: no request waits any more
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, seconds: float) -> bool:
        """True as soon as it rings, False when the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
        rang = self._event.is_set()
        self._event.clear()
        return rang


class Service:
    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        self.gate = Authenticator(yard, lambda secret: self.read(yard.authenticate, secret))
        self.counts = RequestCounts()
        self.news = SiteChanges(yard.hints)
        self.stopping = False
        self._readers = ThreadPoolExecutor(READERS, "yard-read")
        self._writers = ThreadPoolExecutor(WRITERS, "yard-write")
        self._bells: set[Bell] = set()

    async def read(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that blocks for a moment, without blocking other requests."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, lambda: function(*args, **kwargs))

    async def write(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like `read`, for a function that writes to a file and may wait for the disk."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writers, lambda: function(*args, **kwargs))

    @contextlib.contextmanager
    def listening(self, *topics: str) -> Iterator[Bell]:
        """A bell that rings with any of the topics, and when the server stops."""
        bell = Bell()
        self._bells.add(bell)
        unlisten = [self.yard.hints.listen(topic, bell.ring) for topic in topics]
        try:
            yield bell
        finally:
            self._bells.discard(bell)
            for end in unlisten:
                end()

    def stop(self) -> None:
        """End open streams and waits: a server that stops does not wait for clients that follow a log."""
        self.stopping = True
        for bell in tuple(self._bells):
            bell.ring()

    def close(self) -> None:
        self.news.close()
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._writers.shutdown(wait=False, cancel_futures=True)


class RequestCounts:
    """Counted by declared path, never by the requested URL: the number of rows stays small."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, int]] = Counter()

    def add(self, method: str, path: str, status: int) -> None:
        self._counts[method, path, status] += 1

    def __iter__(self) -> Iterator[tuple[tuple[str, str, int], int]]:
        return iter(sorted(self._counts.items()))
