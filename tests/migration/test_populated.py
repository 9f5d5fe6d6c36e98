"""A yard that is in use is upgraded from any older revision: nothing that was in its store is lost or unreadable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine

from runyard.model.nodes import EVERYBODY, Limits
from runyard.store import (  # fmt: skip
    attempts,
    blob_deletions,
    checkpoints,
    counters,
    cursors,
    dependency_gates,
    engine,
    keys,
    metrics,
    migrate,
    queue,
    recipes,
    requests,
    runs,
    site_rows,
    sweeps,
)
from runyard.store.store import Store, open_store
from runyard.yard import views
from tests.migration.populated import CAPACITY, DIGEST, NEW_IN, NOW, Rows

REVISIONS = sorted(path.name[:4] for path in (migrate.MIGRATIONS / "versions").glob("[0-9]*.py"))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/x.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def database(url: str) -> Iterator[Engine]:
    made = sa.create_engine(engine.parse_url(url))
    yield made
    made.dispose()


@pytest.fixture(params=REVISIONS)
def written(request: pytest.FixtureRequest, database: Engine) -> Rows:
    """A yard was in use since the first revision, and had come as far as this one: what is in its store."""
    written: Rows = {}
    for revision in REVISIONS[: REVISIONS.index(request.param) + 1]:
        rows = NEW_IN.get(revision, {})
        step(database, revision)
        fill(database, rows)
        written |= rows
    return written


@pytest.fixture
def store(url: str, written: Rows) -> Iterator[Store]:
    """Opened by today's code."""
    opened = open_store(url)
    yield opened
    opened.close()


def step(database: Engine, revision: str) -> None:
    with database.begin() as connection:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(migrate.MIGRATIONS).replace("%", "%%"))
        command.upgrade(config, revision)


def fill(database: Engine, rows: Rows) -> None:
    with database.begin() as connection:
        for name, added in rows.items():
            connection.execute(sa.insert(_table(name, added[0])), added)


def _table(name: str, row: dict[str, Any]) -> sa.TableClause:
    """With the columns that there were, whatever today's code believes."""
    return sa.table(name, *map(sa.column, row))


def test_every_table_of_every_revision_is_filled(database: Engine) -> None:
    """And each of its columns, but for the number that events give themselves."""
    for revision in REVISIONS:
        before = set(sa.inspect(database).get_table_names())
        step(database, revision)
        look = sa.inspect(database)
        rows = NEW_IN.get(revision, {})
        assert set(look.get_table_names()) - before - {"alembic_version"} == set(rows), revision
        for name, (row, *_) in rows.items():
            known = {column["name"] for column in look.get_columns(name)}
            assert set(row) == known - ({"id"} if name == "events" else set()), name


def test_a_yard_goes_on_after_an_upgrade(store: Store, written: Rows) -> None:
    """One test: a store of each revision on each database takes a while to build."""
    with store.read() as connection:
        assert migrate.revision(connection) == migrate.NEWEST
        _nothing_is_lost(connection, written)
        _runs_are_there(connection)
        _what_waits_is_found(connection)
        _what_is_under_way_goes_on(connection)
        _places_and_people_are_known(connection)
        _programs_get_their_answers(connection)
        _what_came_later_is_there_too(connection, written)
    _numbers_go_on_where_they_were(store)


def _nothing_is_lost(connection: Connection, written: Rows) -> None:
    for name, rows in written.items():
        table = _table(name, rows[0])
        found = connection.execute(sa.select(table).order_by(*list(table.c)[:2]))
        assert [dict(row._mapping) for row in found] == rows, name


def _runs_are_there(connection: Connection) -> None:
    assert runs.counts(connection) == {
        "queued": 2, "starting": 0, "running": 1, "succeeded": 1, "failed": 0, "cancelled": 0,
    }  # fmt: skip
    known = runs.by_idempotency_key(connection, "ann", "once")
    assert known is not None
    done = runs.get(connection, known.id)
    assert done is not None
    shown = views.run_view(done, runs.tags_of(connection, [1])[1])
    assert (shown["id"], shown["tags"], shown["params"], shown["wall_time"]) == (1, ["night"], {"lr": 0.1}, 2.0)
    assert (done.stop_detail, done.afresh) == (None, 0)
    assert [row.id for row in runs.list_page(connection, recipe="mnist")] == [1]
    assert [row.message for row in runs.event_page(connection, 1, 0, 10)] == ["it ended well"]
    assert [row.path for row in attempts.outputs_of(connection, 1)] == ["model.h5"]


def _what_waits_is_found(connection: Connection) -> None:
    assert queue.tracks(connection, "") == ["ann/digits"]
    assert [row.id for row in queue.heads(connection, "", "ann/digits", 10)] == [3]
    assert [row.id for row in queue.next_up(connection, blocked=True, limit=10)] == [4]
    assert (queue.in_use(connection), queue.past_use(connection, NOW, 1.0)) == (
        {"ann/digits": 1.0}, {"ann/digits": 12.5},
    )  # fmt: skip
    assert dependency_gates.waiting(connection, 1) == [4]
    assert dependency_gates.left(connection, 1) == (1, 2)


def _what_is_under_way_goes_on(connection: Connection) -> None:
    (alive,) = attempts.alive(connection, "local", "box")
    assert (alive.run_id, alive.batch, alive.native_id, alive.permit) == (2, "ry-1-1-1", "4711", None)
    (wished,) = attempts.wished(connection, "local", "box")
    assert (wished.run_id, wished.cancel_at) == (2, NOW + 3)
    assert (wished.asked, wished.brought, wished.asked_checkpoint, wished.brought_checkpoint) == (0, 0, 0, 0)


def _places_and_people_are_known(connection: Connection) -> None:
    (agent,) = site_rows.all_agents(connection)
    assert (agent.since, agent.disk, agent.away, agent.free) == (NOW + 4, None, None, CAPACITY)
    (node,) = site_rows.landscape(connection).nodes["local"]
    assert (node.name, node.total.cpus, node.labels, node.limits) == ("box", 4, (), EVERYBODY)
    (site,) = site_rows.all_sites(connection)
    assert (site.name, site.drained_at) == ("local", None)
    token = site_rows.token_by_digest(connection, "t1")
    assert token is not None
    assert (token.name, Limits.from_json(json.loads(token.limits))) == ("ann", EVERYBODY)
    assert site_rows.was_revoked(connection, "t2")


def _programs_get_their_answers(connection: Connection) -> None:
    assert [row.correlation_id for row in requests.due(connection, ["intake"], NOW, 10)] == ["c1"]
    default = recipes.default(connection)
    assert default is not None
    assert default.name == "mnist"
    listener = cursors.get(connection, "mail")
    assert listener is not None
    assert listener.position == 1
    assert keys.get(connection, "links") == "s3cret"


def _what_came_later_is_there_too(connection: Connection, written: Rows) -> None:
    """In tables that are empty where the yard is older than they."""
    assert [row.last for row in metrics.of_run(connection, 1)] == ([0.1] if "metrics" in written else [])
    assert metrics.summary_of(connection, 1) == ({"accuracy": 0.91} if "summaries" in written else {})
    unread = [2] if "metric_positions" in written else []
    assert [row.run_id for row in metrics.open_positions(connection)] == unread
    has_sweep = "sweeps" in written
    assert [row.id for row in sweeps.hungry(connection)] == ([1] if has_sweep else [])
    assert [row.seed for row in sweeps.places(connection, 1)] == ([1 << 40, 2] if has_sweep else [])
    assert [row.kind for row in sweeps.decisions_after(connection, 1, 0)] == (["trial"] if has_sweep else [])
    assert [row.size for row in checkpoints.of_run(connection, 2)] == ([1 << 33] if "checkpoints" in written else [])
    listed = {DIGEST: blob_deletions.DeletionState.CONDEMNED} if "condemned" in written else {}
    assert blob_deletions.states(connection, [DIGEST]) == listed


def _numbers_go_on_where_they_were(store: Store) -> None:
    assert store.write(lambda connection: counters.take(connection, "runs")).result() == 5
    event = {"run_id": 3, "attempt": 0, "at": NOW, "kind": "note", "message": "upgraded"}
    store.write(lambda connection: runs.insert_events(connection, [event])).result()
    with store.read() as connection:
        assert [row.kind for row in runs.events_since(connection, 1, 10)] == ["note"]
