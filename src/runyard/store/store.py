"""The store: a writer, a few readers, and the clock for leases."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TypeVar

from sqlalchemy import Connection, exc

from runyard import errors
from runyard.store import engine, migrate, outage
from runyard.store.reserve import PageReserve, is_full
from runyard.store.session import ServerSession
from runyard.store.writer import BulkWork, Writer

Item = TypeVar("Item")
T = TypeVar("T")


class Store:
    """Promises: a write's future resolves only after its commit is on disk; each write is atomic by itself; writes
    happen one after the other; a read sees one consistent moment. All methods may be called from any thread.

    While PostgreSQL is unavailable, reads and writes raise StoreError; afterwards they work again."""

    def __init__(self, url: str, *, network: bool = False, clock: Callable[[], float] | None = None) -> None:
        """`clock` instead of the store's own: the machine's for an SQLite file, the server's for PostgreSQL."""
        self._url = engine.parse_url(url)
        self.is_shared = engine.is_shared(self._url)
        self._writing = engine.writing_engine(self._url, network=network)
        self._reading = engine.reading_engine(self._url)
        self._reserve = None if self.is_shared or network else PageReserve(self._writing)
        self._shared_clock = SharedClock()
        self.clock = clock or (self._shared_clock if self.is_shared else time.time)
        self._writer: Writer | None = None

    def start(self) -> None:
        """Migrate the schema, then accept work."""
        migrate.upgrade(self._writing)
        self._writer = Writer(self._writing, self._shared_clock.set, self._reserve)
        if self.is_shared:
            self.write(lambda _: None).result()  # tells the time

    def session(self, label: str) -> ServerSession:
        """For a store that several servers share: not open yet."""
        return ServerSession(self._url, label)

    def write(self, work: Callable[[Connection], T], then: Callable[[T], None] | None = None) -> Future[T]:
        return self._open_writer().submit(work, then)

    def write_in(self, series: BulkWork[Item, T], item: Item) -> Future[T]:
        """As `write`, for work that is done for several items in one call."""
        return self._open_writer().submit_in(series, item)

    def _open_writer(self) -> Writer:
        if self._writer is None:
            raise errors.YardUnreachable("the store is not open")
        return self._writer

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        with outage.told() if self.is_shared else contextlib.nullcontext(), self._reading.begin() as connection:
            yield connection

    def now(self) -> float:
        return self.clock()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._reading.dispose()
        self._writing.dispose()


def open_store(url: str, *, network: bool = False, clock: Callable[[], float] | None = None) -> Store:
    store = Store(url, network=network, clock=clock)
    try:
        store.start()
    except exc.DBAPIError as error:
        store.close()
        if is_full(error):
            raise errors.DiskFull(f"the store cannot be opened: {error.orig}") from None
        raise errors.ConfigError(
            f"the store cannot be opened: {error.orig}", "check the address and its rights"
        ) from None
    except errors.StoreError:
        store.close()
        raise
    return store


class SharedClock:
    """The clock for leases of several servers whose machines have different clocks: PostgreSQL's time at the last
    transaction, plus the time since then by a monotonic clock. It is late by the time of that answer, so servers agree
    to within milliseconds."""

    def __init__(self) -> None:
        self._origin = time.time() - time.monotonic()  # until the first transaction

    def set(self, now: float) -> None:
        self._origin = now - time.monotonic()

    def __call__(self) -> float:
        return self._origin + time.monotonic()
