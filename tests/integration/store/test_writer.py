"""Group commit: durable, atomic piece by piece, in order."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select

from runyard import errors
from runyard.store import BulkWork, Store, counters, open_store
from runyard.store.tables import counters as table


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = f"sqlite:///{tmp_path}/x.db" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
    store = open_store(url)
    yield store
    store.close()


def test_a_failing_piece_does_not_hurt_its_neighbours(store: Store) -> None:
    def good(connection: Connection) -> int:
        return counters.take(connection, "n")

    def bad(connection: Connection) -> int:
        counters.take(connection, "n")
        connection.execute(insert(table).values(name="n", value=1))  # violates the primary key
        return 0

    futures = [store.write(bad if index % 3 == 1 else good) for index in range(30)]
    numbers = [future.result() for index, future in enumerate(futures) if index % 3 != 1]
    assert numbers == list(range(1, 21))
    assert all(futures[index].exception() for index in range(1, 30, 3))
    with store.read() as connection:
        assert connection.execute(select(table.c.value)).scalar() == 20


def test_what_follows_a_commit_sees_it(store: Store) -> None:
    seen: list[int] = []

    def then(_: int) -> None:
        with store.read() as connection:
            seen.append(counters.current(connection, "n"))

    store.write(lambda connection: counters.take(connection, "n"), then).result()
    assert seen == [1]


def test_a_store_is_where_its_path_says(tmp_path: Path) -> None:
    """Whatever characters are in it: a part of it must not be taken for something else of an address."""
    place = tmp_path / "lab?a=1#%41 ü.db"
    open_store(f"sqlite:///{place}").close()
    assert [path for path in tmp_path.iterdir() if path.suffix == ".db"] == [place]


@pytest.mark.parametrize("address", ["garbage", "postgresql://host:port/x", "mysql://host/x"])
def test_what_is_no_address_of_a_store(address: str) -> None:
    with pytest.raises(errors.ConfigError, match="store: "):
        open_store(address)


def test_a_closed_store_refuses(store: Store) -> None:
    store.close()
    with pytest.raises(errors.YardUnreachable):
        store.write(lambda connection: None)


def test_readers_cannot_write(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/x.db")
    with pytest.raises(Exception, match="readonly"), store.read() as connection:
        connection.execute(insert(table).values(name="x", value=1))
    store.close()


_KILLED = """
import os, sys
from runyard.store import counters, open_store
store = open_store(sys.argv[1])
while True:
    number = store.write(lambda connection: counters.take(connection, "n")).result()
    os.write(1, b"%d\\n" % number)
"""


def test_accepted_is_on_disk_when_the_process_is_killed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with subprocess.Popen([sys.executable, "-c", _KILLED, url], stdout=subprocess.PIPE, env={**os.environ}) as process:
        assert process.stdout is not None
        acknowledged = [int(process.stdout.readline()) for _ in range(50)]
        process.kill()
        acknowledged += [int(line) for line in process.stdout.read().split()]
    held = sqlite3.connect(tmp_path / "x.db").execute("SELECT value FROM counters WHERE name = 'n'").fetchone()[0]
    assert held in (acknowledged[-1], acknowledged[-1] + 1)


def test_sqlite_is_durable_and_never_says_locked(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/x.db")

    def pragmas(connection: Connection) -> tuple[str, int]:
        journal = connection.exec_driver_sql("PRAGMA journal_mode").scalar()
        return str(journal), int(connection.exec_driver_sql("PRAGMA synchronous").scalar() or 0)

    assert store.write(pragmas).result() == ("wal", 2)
    store.close()
    network = open_store(f"sqlite:///{tmp_path}/y.db", network=True)
    assert network.write(pragmas).result() == ("delete", 2)
    network.close()


def test_items_of_a_series_share_a_call_and_not_their_failures(store: Store) -> None:
    calls: list[list[int]] = []
    told: list[list[int]] = []

    def work(connection: Connection, items: Sequence[int]) -> list[int]:
        calls.append(list(items))
        first = counters.take(connection, "n", len(items))
        if 13 in items:
            raise errors.InvalidInput("unlucky")
        return [first + place for place in range(len(items))]

    series = BulkWork(work=work, then=told.append)
    begun, go_on = threading.Event(), threading.Event()
    before = store.write(lambda _: begun.set() or go_on.wait(60))
    assert begun.wait(60)
    futures = [store.write_in(series, item) for item in (11, 12, 13, 14)]
    after = store.write(lambda connection: counters.current(connection, "n"))
    last = store.write_in(series, 15)
    go_on.set()
    assert before.result(60)
    assert isinstance(futures.pop(2).exception(60), errors.InvalidInput)
    assert [future.result(60) for future in futures] == [1, 2, 3]
    assert (after.result(60), last.result(60)) == (3, 4)
    assert calls == [[11, 12, 13, 14], [11], [12], [13], [14], [15]]
    assert told == [[1, 2, 3], [4]]
