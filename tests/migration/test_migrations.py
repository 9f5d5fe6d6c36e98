"""The schema that migrations build is the schema that the code believes in, on both databases."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, create_engine, text

from runyard import errors
from runyard.store import engine, migrate
from runyard.store.tables import metadata


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    url = f"sqlite:///{tmp_path}/x.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    return create_engine(engine.parse_url(str(url)))


def test_migrations_build_the_tables(empty: Engine) -> None:
    migrate.upgrade(empty)
    with empty.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    migrate.upgrade(empty)
    empty.dispose()


def test_partial_indexes_are_the_same_both_ways(tmp_path: Path) -> None:
    """Alembic does not compare the conditions of indexes, and the queue depends on them."""
    by_migration, by_tables = (create_engine(f"sqlite:///{tmp_path}/{name}.db") for name in ("one", "two"))
    migrate.upgrade(by_migration)
    metadata.create_all(by_tables)
    assert _indexes(by_migration) == _indexes(by_tables)


def _indexes(database: Engine) -> dict[str, str]:
    with database.connect() as connection:
        rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"))
        return {row.name: re.sub(r"\s+", " ", row.sql) for row in rows}


def test_the_newest_migration_is_the_one_we_expect() -> None:
    numbers = sorted(path.name[:4] for path in (migrate.MIGRATIONS / "versions").glob("[0-9]*.py"))
    assert numbers[-1] == migrate.NEWEST


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    database = create_engine(f"sqlite:///{tmp_path}/x.db")
    migrate.upgrade(database)
    with database.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(errors.ConfigError, match="written by a newer runyard"):
        migrate.upgrade(database)
