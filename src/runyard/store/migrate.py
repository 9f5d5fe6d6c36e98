"""Schema changes: the files in migrations/versions, applied in order, on both databases."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine, inspect, text

from runyard import errors

MIGRATIONS = Path(__file__).parent / "migrations"
NEWEST = "0001"  # a test compares this with the files


def upgrade(engine: Engine) -> None:
    """Alembic is imported only when there is something to do: it would double the start-up time."""
    current = revision(engine)
    if current == NEWEST:
        return
    if current is not None and current > NEWEST:
        raise errors.ConfigError(
            f"this store was written by a newer runyard (schema {current}, we know {NEWEST})", "upgrade runyard"
        )
    _run_alembic(engine)


def revision(engine: Engine) -> str | None:
    with engine.connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _run_alembic(engine: Engine) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
