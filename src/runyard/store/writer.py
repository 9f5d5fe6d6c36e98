"""One thread writes. What arrives while a commit is on its way to the disk shares the next one (group commit)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, exc, text

from runyard import errors

T = TypeVar("T")
LARGEST_GROUP = 256
MEMO = "memo"  # in connection.info: what was read once and holds for the rest of the transaction
# Several servers on one PostgreSQL take turns, as the processes of one SQLite file do.
_PG_TURN = text("SELECT pg_advisory_xact_lock(7227)")


@dataclass(slots=True)
class _Job:
    work: Callable[[Connection], Any]
    then: Callable[[Any], None] | None
    future: Future[Any]
    result: Any = None
    error: BaseException | None = None


class Writer:
    """Runs pieces of work in transactions. Each piece is atomic by itself; a future resolves after the commit."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._turns = engine.dialect.name == "postgresql"
        self._thread = threading.Thread(target=self._loop, name="store-writer", daemon=True)
        self._closed = False
        self._thread.start()

    def submit(self, work: Callable[[Connection], T], then: Callable[[T], None] | None = None) -> Future[T]:
        """`then` is called with the result after the commit, in the writer's thread: keep it quick."""
        if self._closed:
            raise errors.YardUnreachable("the yard is stopping")
        future: Future[T] = Future()
        self._jobs.put(_Job(work=work, then=then, future=future))
        return future

    def close(self) -> None:
        self._closed = True
        self._jobs.put(None)
        self._thread.join()

    def _loop(self) -> None:
        while (job := self._jobs.get()) is not None:
            group, last = self._gather(job)
            self._commit(group)
            for done in group:
                _resolve(done)
            if last:
                return

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

    def _commit(self, group: list[_Job]) -> None:
        try:
            with self._engine.begin() as connection:
                connection.info[MEMO] = None
                if self._turns:
                    connection.execute(_PG_TURN)
                for job in group:
                    _run(job, connection)
        except Exception as error:
            for job in group:
                job.error = job.error or translate(error)


def _run(job: _Job, connection: Connection) -> None:
    """One piece of work behind a savepoint: its failure leaves no trace and does not hurt its neighbours."""
    connection.exec_driver_sql("SAVEPOINT piece")
    try:
        job.result = job.work(connection)
    except Exception as error:
        job.error = translate(error)
        connection.exec_driver_sql("ROLLBACK TO SAVEPOINT piece")
    connection.exec_driver_sql("RELEASE SAVEPOINT piece")


def _resolve(job: _Job) -> None:
    if job.error is not None:
        job.future.set_exception(job.error)
        return
    if job.then is not None:
        job.then(job.result)
    job.future.set_result(job.result)


def translate(error: Exception) -> Exception:
    """The database's errors that a person can act on, in our words."""
    if isinstance(error, exc.DBAPIError):
        message = str(error.orig)
        if "disk is full" in message or "No space left" in message or "disk I/O error" in message:
            return errors.DiskFull(fix="free some space and try again")
    return error
