"""Connections: SQLite tuned to be durable and fast, PostgreSQL with its defaults and keepalives for dead clients."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, NullPool, create_engine, event, exc
from sqlalchemy.engine import URL, make_url

from runyard import errors

SQLITE = "sqlite:///"  # and the path of its file, every character as it is
READERS = 4
GONE_S = 20  # after so long without a sign of a server's machine, PostgreSQL ends what that one had begun
STUCK_S = 60  # and after so long in the middle of a transaction of a process that is stopped


def parse_url(text: str) -> URL:
    if text.startswith(SQLITE):
        return URL.create("sqlite", database=text.removeprefix(SQLITE))
    try:
        url = make_url(text)
    except (exc.ArgumentError, ValueError):  # it is not repeated: a password may be in it
        raise errors.ConfigError("store: this is no address", "write it like postgresql://user@host/database") from None
    if url.get_backend_name() == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    raise errors.ConfigError(f"store: {url.get_backend_name()!r} is not supported", "use a postgresql:// address")


def is_shared(url: URL) -> bool:
    """Whether several servers may use it at the same time."""
    return url.get_backend_name() != "sqlite"


def writing_engine(url: URL, *, network: bool) -> Engine:
    """One connection, used by one thread."""
    if is_shared(url):
        return create_engine(url, pool_size=1, max_overflow=0, pool_pre_ping=True, connect_args=_alert(url))
    engine = create_engine(url, pool_size=1, max_overflow=0, connect_args={"timeout": 30, "check_same_thread": False})
    _prepare(engine, [f"PRAGMA journal_mode={'DELETE' if network else 'WAL'}", "PRAGMA synchronous=FULL", *_COMMON])
    # A transaction that reads first and writes later fails with "database is locked" unless it says so at the start.
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def reading_engine(url: URL) -> Engine:
    if is_shared(url):  # other servers write between two questions of one read
        return create_engine(
            url, pool_size=READERS, max_overflow=READERS, pool_pre_ping=True, isolation_level="REPEATABLE READ",
            connect_args=_alert(url),
        )  # fmt: skip
    engine = create_engine(
        url, pool_size=READERS, max_overflow=READERS, connect_args={"timeout": 30, "check_same_thread": False}
    )
    _prepare(engine, ["PRAGMA query_only=ON", *_COMMON])
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine


def lasting_engine(url: URL, label: str) -> Engine:
    """For a connection that stays open outside of transactions; the label is what PostgreSQL shows of it."""
    settings = {**_alert(url), "application_name": label}
    return create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=settings)


def _alert(url: URL) -> dict[str, Any]:
    """A machine that lost its power does not close its connection. Its locks would block all others for hours.
    And a database that was created without a locale answers in bytes, unless text is requested."""
    step = GONE_S // 4
    ours = (
        f"-c tcp_keepalives_idle={step} -c tcp_keepalives_interval={step} -c tcp_keepalives_count=3 "
        f"-c idle_in_transaction_session_timeout={STUCK_S}s"
    )
    return {
        "options": f"{url.query.get('options', '')} {ours}".strip(),
        "keepalives_idle": step,
        "keepalives_interval": step,
        "keepalives_count": 3,
        "tcp_user_timeout": GONE_S * 1000,
        "connect_timeout": GONE_S,
        "client_encoding": "utf8",
    }


_COMMON = ["PRAGMA foreign_keys=ON", "PRAGMA cache_size=-16000", "PRAGMA temp_store=MEMORY"]


def _prepare(engine: Engine, pragmas: list[str]) -> None:
    def connected(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # we say BEGIN and COMMIT ourselves
        for pragma in pragmas:
            connection.execute(pragma).close()

    event.listen(engine, "connect", connected)


def server_version(url: URL, label: str) -> str:
    """Raises YardUnreachable where PostgreSQL does not answer."""
    try:
        with lasting_engine(url, label).connect() as connection:
            return str(connection.exec_driver_sql("SHOW server_version").scalar_one())
    except exc.DBAPIError as error:
        raise errors.YardUnreachable(str(error.orig).partition("\n")[0]) from error
