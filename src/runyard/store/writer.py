"""One thread writes. Writes that arrive during a commit share the next one (group commit)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Engine, exc, text

from runyard import errors
from runyard.store import outage
from runyard.store.reserve import PageReserve, is_full

Item = TypeVar("Item")
T = TypeVar("T")
LARGEST_GROUP = 256
MEMO = "memo"  # in connection.info: what was read once and holds for the rest of the transaction
# Several servers on one PostgreSQL take turns, as the processes of one SQLite file do. So what they write appears in
# the order in which it was numbered, and whoever decides sees all that was decided before. The answer is the time at
# which the turn came.
PG_TURN = text("SELECT CAST(extract(epoch FROM clock_timestamp()) AS float8) FROM pg_advisory_xact_lock(7227)")


@dataclass(frozen=True, eq=False)
class BulkWork(Generic[Item, T]):
    """Work that costs hardly more for many items than for one: consecutive items of the same commit are processed in
    one call, and one by one when that fails."""

    work: Callable[[Connection, Sequence[Item]], list[T]]
    then: Callable[[list[T]], None]


@dataclass(slots=True)
class _Job:
    series: BulkWork[Any, Any]
    item: Any
    future: Future[Any]
    result: Any = None
    error: BaseException | None = None


class Writer:
    """Runs pieces of work in transactions. Each piece is atomic by itself; a future resolves after the commit."""

    def __init__(self, engine: Engine, tell_time: Callable[[float], None], reserve: PageReserve | None = None) -> None:
        """`tell_time` is called with the time by PostgreSQL's clock at the beginning of each transaction there."""
        self._engine, self._tell_time, self._reserve = engine, tell_time, reserve
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._turns = engine.dialect.name == "postgresql"
        self._thread = threading.Thread(target=self._loop, name="store-writer", daemon=True)
        self._closed = False
        self._thread.start()

    def submit(self, work: Callable[[Connection], T], then: Callable[[T], None] | None = None) -> Future[T]:
        """`then` is called with the result after the commit, in the writer's thread: keep it quick."""
        alone: BulkWork[None, T] = BulkWork(
            work=lambda connection, _: [work(connection)], then=lambda results: then(results[0]) if then else None
        )
        return self.submit_in(alone, None)

    def submit_in(self, series: BulkWork[Item, T], item: Item) -> Future[T]:
        """The result for this item; the series' `then` is called with those of all items in the commit."""
        if self._closed:
            raise errors.YardUnreachable("the yard is stopping")
        future: Future[T] = Future()
        self._jobs.put(_Job(series=series, item=item, future=future))
        return future

    def close(self) -> None:
        self._closed = True
        self._jobs.put(None)
        self._thread.join()

    def _loop(self) -> None:
        if self._reserve is not None:
            self._reserve.lay_in()
        while (job := self._jobs.get()) is not None:
            group, last = self._gather(job)
            pieces = [list(jobs) for _, jobs in groupby(group, key=lambda job: job.series)]
            self._commit(pieces)
            for done in pieces:
                _resolve(done)
            if last:
                return
            if self._reserve is not None:
                self._reserve.keep()

    def _gather(self, first: _Job) -> tuple[list[_Job], bool]:
        group = [first]
        while len(group) < LARGEST_GROUP:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return group, True
            group.append(job)
        return group, False

    def _commit(self, pieces: list[list[_Job]]) -> None:
        try:
            self._transact_with_reserve(pieces)
        except Exception as error:
            is_away = isinstance(error, errors.StoreError)  # then it may have been done, and nothing can be done now
            if not is_away and len(pieces) == 1 and len(pieces[0]) > 1:
                self._commit([[job] for job in pieces[0]])
                return
            for job in (job for jobs in pieces for job in jobs):
                job.error = job.error or translate(error)

    def _transact_with_reserve(self, pieces: list[list[_Job]]) -> None:
        try:
            self._transact(pieces)
        except exc.DBAPIError as error:
            if self._reserve is None or not is_full(error):
                raise
            self._reserve.make_room()
            for job in (job for jobs in pieces for job in jobs):
                job.error = None
            self._transact(pieces)

    def _transact(self, pieces: list[list[_Job]]) -> None:
        with outage.told(outage.UNDONE), self._engine.connect() as connection, connection.begin() as transaction:
            connection.info[MEMO] = None
            if self._turns:
                self._tell_time(connection.execute(PG_TURN).scalar_one())
            for jobs in pieces:
                _run_apart(jobs, connection) if len(pieces) > 1 else _run(jobs, connection)
            with outage.told(outage.IN_DOUBT):
                transaction.commit()


def _run_apart(jobs: list[_Job], connection: Connection) -> None:
    """One piece of work behind a savepoint: its failure changes nothing and does not affect the others."""
    connection.exec_driver_sql("SAVEPOINT piece")
    try:
        _run(jobs, connection)
    except Exception as error:
        if is_full(error) or outage.is_away(error):  # that ends the whole transaction, with its savepoints
            raise
        connection.exec_driver_sql("ROLLBACK TO SAVEPOINT piece")
        if len(jobs) > 1:
            for job in jobs:
                _run_apart([job], connection)
        else:
            jobs[0].error = translate(error)
    connection.exec_driver_sql("RELEASE SAVEPOINT piece")


def _run(jobs: list[_Job], connection: Connection) -> None:
    results = jobs[0].series.work(connection, [job.item for job in jobs])
    for job, result in zip(jobs, results, strict=True):
        job.result = result


def _resolve(jobs: list[_Job]) -> None:
    good = [job.result for job in jobs if job.error is None]
    if good:
        jobs[0].series.then(good)
    for job in jobs:
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)


def translate(error: Exception) -> Exception:
    """Errors of the database that a person can fix, as runyard errors."""
    return errors.DiskFull() if is_full(error) else error
