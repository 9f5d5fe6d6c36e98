"""A permanent connection to PostgreSQL, by which the servers of one yard know of each other.

It holds advisory locks (that this server is alive, which tasks it runs): PostgreSQL releases them when the connection
ends, in whatever way, so a killed server leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import select
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import URL, Connection, exc, text

from runyard import errors
from runyard.store import engine

CHANNEL = "runyard"
SERVERS = 7228  # the class of the lock that every server has a share of
DUTIES = 7229  # and of those that one server at a time has

_ENTER = text("SELECT pg_advisory_lock_shared(:class, 0)")
_OTHERS = text(
    """
    SELECT activity.application_name FROM pg_locks AS lock JOIN pg_stat_activity AS activity USING (pid)
    WHERE lock.locktype = 'advisory' AND lock.classid = :class AND lock.objid = 0 AND lock.granted
        AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND lock.pid <> pg_backend_pid()
    """
)
_TAKE = text("SELECT key, pg_try_advisory_lock(:class, key) FROM unnest(CAST(:keys AS int[])) AS key")
_LEAVE = text("SELECT pg_advisory_unlock(:class, key) FROM unnest(CAST(:keys AS int[])) AS key")
_TELL = text("SELECT pg_notify(:channel, message) FROM unnest(CAST(:messages AS text[])) AS message")


class ServerSession:
    """For one thread at a time. Everything raises YardUnreachable when the connection is lost, and locks with it."""

    def __init__(self, url: URL, label: str) -> None:
        self._engine = engine.lasting_engine(url, label)
        self._connection: Connection | None = None
        self._heard: list[str] = []

    def open(self) -> None:
        """Connect again, with no lock held."""
        self.close()
        with _told():
            self._connection = self._engine.connect()
            driver = self._driver()
            driver.add_notify_handler(self._receive)
            self._connection.exec_driver_sql(f"LISTEN {CHANNEL}")
            if driver.info.server_version >= 140000:  # a process that is stopped, or stuck, must not keep its locks
                self._connection.exec_driver_sql(f"SET idle_session_timeout = '{engine.GONE_S}s'")

    def enter(self) -> None:
        """From now on other servers see that this one is alive."""
        self._execute(_ENTER, {"class": SERVERS})

    def others(self) -> list[str]:
        """The labels of other live servers."""
        return [str(row[0]) for row in self._execute(_OTHERS, {"class": SERVERS})]

    def take(self, names: Sequence[str]) -> list[str]:
        """Take those locks that are free; returns those that are ours now. Do not pass locks that we hold."""
        keys = {key_of(name): name for name in names}
        rows = self._execute(_TAKE, {"class": DUTIES, "keys": list(keys)})
        return [keys[row[0]] for row in rows if row[1]]

    def leave(self, names: Iterable[str]) -> None:
        self._execute(_LEAVE, {"class": DUTIES, "keys": [key_of(name) for name in names]})

    def tell(self, messages: Iterable[str]) -> None:
        """Notify all other sessions; each message has less than 8000 bytes."""
        self._execute(_TELL, {"channel": CHANNEL, "messages": list(messages)})

    def wait(self, seconds: float, wake: int) -> None:
        """Wait until a notification arrives, the descriptor can be read, or the time has passed."""
        with _told():
            poll = select.poll()
            for source in (self._driver(), wake):
                poll.register(source, select.POLLIN)
            poll.poll(max(0.0, seconds) * 1000)

    def hear(self) -> list[str]:
        """Notifications of others. Queries PostgreSQL, so the connection worked when this was called."""
        self._execute(text("SELECT 1"), {})
        heard, self._heard = self._heard, []
        return heard

    def close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(exc.SQLAlchemyError):
                self._connection.invalidate()
                self._connection.close()
            self._connection = None
        self._heard.clear()

    def _receive(self, notice: Any) -> None:
        if notice.pid != self._driver().info.backend_pid:
            self._heard.append(notice.payload)

    def _driver(self) -> Any:
        if self._connection is None:
            raise errors.YardUnreachable("the session with PostgreSQL is not open")
        return self._connection.connection.driver_connection

    def _execute(self, statement: Any, values: dict[str, Any]) -> Sequence[Any]:
        if self._connection is None:
            raise errors.YardUnreachable("the session with PostgreSQL is not open")
        with _told():
            result = self._connection.execute(statement, values)
            return result.all() if result.returns_rows else []


@contextlib.contextmanager
def _told() -> Any:
    try:
        yield
    except (exc.SQLAlchemyError, OSError, ValueError) as error:  # ValueError: of a socket that is closed
        reason = str(getattr(error, "orig", None) or error).partition("\n")[0]
        raise errors.YardUnreachable(f"the connection to PostgreSQL is lost: {reason}") from None


def key_of(name: str) -> int:
    """A name as the number that PostgreSQL wants for a lock: 32 bits with a sign."""
    number = zlib.crc32(name.encode())
    return number - (1 << 32) if number >= 1 << 31 else number
