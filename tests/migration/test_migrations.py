"""The schema that migrations build is the schema that the code believes in, on both databases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Engine, create_engine, exc, inspect, text

from runyard import errors
from runyard.store import engine, migrate
from runyard.store.tables import metadata


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    url = f"sqlite:///{tmp_path}/x.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    database = engine.writing_engine(engine.parse_url(str(url)), network=False)
    yield database
    database.dispose()


@pytest.mark.parametrize("build", [migrate.apply_migrations, migrate.create])
def test_both_ways_build_the_tables(empty: Engine, build: Callable[[Connection], None]) -> None:
    with empty.begin() as connection:
        build(connection)
    with empty.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        assert migrate.revision(connection) == context.get_current_revision() == migrate.NEWEST
    migrate.upgrade(empty)


def test_partial_indexes_are_the_same_both_ways(tmp_path: Path) -> None:
    """Alembic does not compare the conditions of indexes, and the queue depends on them."""
    assert _indexes(tmp_path / "one.db", migrate.apply_migrations) == _indexes(tmp_path / "two.db", migrate.create)


def _indexes(path: Path, build: Callable[[Connection], None]) -> dict[str, str]:
    with create_engine(f"sqlite:///{path}").begin() as connection:
        build(connection)
        rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"))
        return {row.name: re.sub(r"\s+", " ", row.sql) for row in rows}


def test_tables_of_another_program_are_left_alone(empty: Engine) -> None:
    with empty.begin() as connection:
        connection.execute(text("CREATE TABLE runs (song TEXT)"))
    with pytest.raises(exc.DBAPIError, match="already exists"):
        migrate.upgrade(empty)
    with empty.connect() as connection:
        assert inspect(connection).get_table_names() == ["runs"]


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
