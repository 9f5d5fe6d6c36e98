"""Schema changes: the files in migrations/versions, applied in order, on both databases."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from runyard import errors
from runyard.store.tables import metadata
from runyard.store.writer import PG_TURN

MIGRATIONS = Path(__file__).parent / "migrations"
NEWEST = "0008"  # a test compares this with the files

# As alembic makes it: it goes on from here when there is a newer schema.
_VERSION_TABLE = (
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
    "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
)


def upgrade(engine: Engine) -> None:
    """An empty store gets the newest tables at once; alembic, which would double the start-up time, is imported only
    for a store of an older version."""
    with engine.connect() as connection:
        if _is_current(connection):
            return
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(PG_TURN)
        if not _is_current(connection):  # no other server was faster
            create(connection) if revision(connection) is None else apply_migrations(connection)


def _is_current(connection: Connection) -> bool:
    current = revision(connection)
    if current is not None and current > NEWEST:
        raise errors.ConfigError(
            f"this store was written by a newer runyard (schema {current}, we know {NEWEST})", "upgrade runyard"
        )
    return current == NEWEST


def revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def create(connection: Connection) -> None:
    """What all migrations together build: a test compares the two."""
    metadata.create_all(connection, checkfirst=False)
    connection.execute(text(_VERSION_TABLE))
    connection.execute(text("INSERT INTO alembic_version VALUES (:newest)"), {"newest": NEWEST})


def apply_migrations(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
