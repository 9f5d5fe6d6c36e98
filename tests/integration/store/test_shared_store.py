"""One PostgreSQL for several servers: their clocks, their first start, and what one read sees."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import pytest
from sqlalchemy import Connection, text

from runyard.store import counters, open_store

HOUR = 3600.0


def test_time_is_told_by_the_store_and_not_by_the_machine(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = time.time
    monkeypatch.setattr(time, "time", lambda: machine() + HOUR)
    store = open_store(postgres_url)
    try:
        assert abs(store.now() - machine()) < HOUR / 2
        told, database = store.write(lambda connection: (store.now(), _clock(connection))).result()
        assert abs(told - database) < 60
    finally:
        store.close()


def _clock(connection: Connection) -> float:
    return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())


OPEN = """
import sys
from runyard.store import counters, open_store
store = open_store(sys.argv[1])
print(store.write(lambda connection: counters.take(connection, "n")).result())
store.close()
"""


def test_servers_that_start_together_make_the_tables_once(postgres_url: str) -> None:
    commands = [[sys.executable, "-c", OPEN, postgres_url]] * 4
    starts = [subprocess.Popen(one, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for one in commands]
    ends = [start.communicate(timeout=120) for start in starts]
    assert [start.returncode for start in starts] == [0] * 4, ends
    assert sorted(int(out) for out, _ in ends) == [1, 2, 3, 4]


def test_a_database_that_was_made_without_a_locale_keeps_text(component: Any, postgres_server: Any) -> None:
    """As createdb makes it where the server's account has none. PostgreSQL answers in bytes there, unless asked."""
    component("postgresql")
    with postgres_server().database(encoding="SQL_ASCII") as url:
        store = open_store(url)
        try:
            store.write(lambda connection: counters.take(connection, "größe")).result()
            with store.read() as connection:
                assert counters.current(connection, "größe") == 1
        finally:
            store.close()


def test_a_read_sees_one_moment_although_others_write(postgres_url: str) -> None:
    ours, theirs = open_store(postgres_url), open_store(postgres_url)
    try:
        with ours.read() as connection:
            before = counters.current(connection, "n")
            theirs.write(lambda writing: counters.take(writing, "n")).result()
            assert counters.current(connection, "n") == before
        with ours.read() as connection:
            assert counters.current(connection, "n") == before + 1
    finally:
        ours.close()
        theirs.close()
