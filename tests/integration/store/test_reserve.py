"""An SQLite file on a disk that is full: what must be written has room, as long as there is any."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, text

from runyard import errors
from runyard.store import Store, counters, open_store, reserve
from runyard.store.tables import counters as table
from tests.acceptance.witness import until
from tests.labs.disks import fill, small_disk

pytestmark = pytest.mark.component("root")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", "size=16m") as small:
        yield small


@pytest.fixture
def store(disk: Path) -> Iterator[Store]:
    store = open_store(f"sqlite:///{disk}/x.db")
    store.write(lambda connection: counters.take(connection, "n")).result(60)
    yield store
    store.close()


def test_a_full_disk_takes_some_hundred_commits_more(store: Store, disk: Path) -> None:
    fill(disk / "filler")
    for number in range(2, 500):
        assert store.write(lambda connection: counters.take(connection, "n")).result(60) == number


def test_rows_are_added_until_the_reserve_is_spent_and_nothing_is_half_written(store: Store, disk: Path) -> None:
    fill(disk / "filler")
    names = _add_until_refused(store)
    assert len(names) > 200
    with store.read() as connection:
        assert {name for name, _ in connection.execute(table.select())} == {"n", *names}
    (disk / "filler").unlink()
    store.write(lambda connection: counters.take(connection, "n")).result(60)
    store.close()
    again = open_store(f"sqlite:///{disk}/x.db")
    with again.read() as connection:
        assert connection.execute(text("PRAGMA integrity_check")).scalar() == "ok"
        assert counters.current(connection, "n") == 2
    again.close()


def test_a_reserve_that_was_spent_comes_back_with_the_room(store: Store, disk: Path) -> None:
    fill(disk / "filler")
    before = len(_add_until_refused(store))
    (disk / "filler").unlink()
    until(lambda: _spare(store) >= reserve.SIZE, what="pages to spare", timeout=60)
    fill(disk / "filler")
    assert len(_add_until_refused(store, "second")) > before / 2


def test_neighbours_in_one_commit_all_get_their_place(store: Store, disk: Path) -> None:
    """A disk that is full ends a transaction with all of its savepoints."""
    fill(disk / "filler")
    futures = [store.write(lambda connection: counters.take(connection, "n")) for _ in range(300)]
    assert sorted(future.result(60) for future in futures) == list(range(2, 302))


def test_there_is_room_for_what_is_new_only_where_there_is_room(store: Store, disk: Path) -> None:
    store.write(reserve.check_room).result(60)
    fill(disk / "filler")
    with pytest.raises(errors.DiskFull, match=f"free in {disk}; nothing was recorded"):
        store.write(reserve.check_room).result(60)


def _spare(store: Store) -> int:
    store.write(lambda connection: counters.take(connection, "n")).result(60)
    with store.read() as connection:
        return int(connection.execute(text("PRAGMA freelist_count")).scalar_one()) * 4096


def _add_until_refused(store: Store, prefix: str = "first") -> list[str]:
    added = []
    with contextlib.suppress(errors.DiskFull):
        while True:
            name = f"{prefix}-{len(added)}-".ljust(1000, "x")

            def add(connection: Connection, name: str = name) -> None:
                connection.execute(insert(table).values(name=name, value=1))

            store.write(add).result(60)
            added.append(name)
    return added
