"""Connections: SQLite tuned to be durable and quick, PostgreSQL as it is."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, make_url

from runyard import errors

READERS = 4


def parse_url(text: str) -> URL:
    url = make_url(text)
    if url.get_backend_name() == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() != "sqlite":
        raise errors.ConfigError(f"store: {url.get_backend_name()!r} is not supported", "use a postgresql:// address")
    return url


def writing_engine(url: URL, *, network: bool) -> Engine:
    """One connection, used by one thread."""
    if url.get_backend_name() != "sqlite":
        return create_engine(url, pool_size=1, max_overflow=0, pool_pre_ping=True)
    engine = create_engine(url, pool_size=1, max_overflow=0, connect_args={"timeout": 30, "check_same_thread": False})
    _prepare(engine, [f"PRAGMA journal_mode={'DELETE' if network else 'WAL'}", "PRAGMA synchronous=FULL", *_COMMON])
    # A transaction that reads first and writes later fails with "database is locked" unless it says so at the start.
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def reading_engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        return create_engine(url, pool_size=READERS, max_overflow=READERS, pool_pre_ping=True)
    engine = create_engine(
        url, pool_size=READERS, max_overflow=READERS, connect_args={"timeout": 30, "check_same_thread": False}
    )
    _prepare(engine, ["PRAGMA query_only=ON", *_COMMON])
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine


_COMMON = ["PRAGMA foreign_keys=ON", "PRAGMA cache_size=-16000", "PRAGMA temp_store=MEMORY"]


def _prepare(engine: Engine, pragmas: list[str]) -> None:
    def connected(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # we say BEGIN and COMMIT ourselves
        for pragma in pragmas:
            connection.execute(pragma).close()

    event.listen(engine, "connect", connected)
