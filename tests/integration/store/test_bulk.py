"""Many rows in one statement: as they are, in their order, on every kind of store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import exc

from runyard.store import Store, bulk, open_store, runs

MESSAGES = ["größe", 'a "quote"', "back\\slash", "line\nand \x01 sign", "", "null", "{}", "😀"]


@pytest.fixture(params=["sqlite", "UTF8", "SQL_ASCII"])
def store(
    request: pytest.FixtureRequest, component: Callable[[str], str], postgres_server: Any, tmp_path: Path
) -> Iterator[Store]:
    if request.param == "sqlite":
        yield from _opened(f"sqlite:///{tmp_path}/yard.db")
        return
    component("postgresql")
    with postgres_server().database(encoding=request.param) as url:
        yield from _opened(url)


def _opened(url: str) -> Iterator[Store]:
    store = open_store(url)
    try:
        yield store
    finally:
        store.close()


def _run(run_id: int, **values: Any) -> dict[str, Any]:
    texts = dict.fromkeys(("owner", "project", "name", "wanted_site", "lane", "track", "resources", "spec"), "größe")
    numbers = dict.fromkeys(("priority", "blocked", "cpus", "gpus", "attempt", "failures"), -1)
    return {"id": run_id, **texts, **numbers, "state": "queued", "created_at": 0.1, "queued_at": 1e9 / 3, **values}


def _event(run_id: int, message: str) -> dict[str, Any]:
    return {"run_id": run_id, "attempt": 0, "at": 0.1, "kind": "submitted", "message": message}


def test_more_rows_than_go_into_one_statement_keep_their_order(store: Store) -> None:
    many = [f"{message} {number}" for number in range(bulk.TOGETHER) for message in MESSAGES]
    store.write(lambda connection: runs.insert_events(connection, [_event(7, one) for one in many])).result()
    with store.read() as connection:
        found = runs.event_page(connection, 7, 0, 2 * len(many))
    assert [row.message for row in found] == many


def test_values_come_back_as_they_were(store: Store) -> None:
    given = [_run(1 << 40, detail=None, spec='{"a": "\\u00fc\\ud800"}'), _run(3, detail="why", spec="")]
    store.write(lambda connection: runs.insert_runs(connection, given)).result()
    with store.read() as connection:
        found = {row.id: row._mapping for row in runs.get_many(connection, [1 << 40, 3])}
    assert [{name: found[row["id"]][name] for name in row} for row in given] == given
    assert [row["afresh"] for row in found.values()] == [0, 0]  # what nobody gave is the table's default


def test_no_rows_are_no_statement(store: Store) -> None:
    store.write(lambda connection: runs.insert_runs(connection, [])).result()
    with store.read() as connection:
        assert sum(runs.counts(connection).values()) == 0


def test_of_rows_with_one_that_is_refused_none_is_there(store: Store) -> None:
    rows = [_run(1), _run(2), _run(1)]
    with pytest.raises(exc.IntegrityError):
        store.write(lambda connection: runs.insert_runs(connection, rows)).result()
    with store.read() as connection:
        assert runs.get_many(connection, [1, 2]) == []
