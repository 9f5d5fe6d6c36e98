"""PostgreSQL goes away and comes back while a store uses it: refused clearly, done once, and used again at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import pytest
from sqlalchemy import Connection, text

from runyard import errors
from runyard.store import BulkWork, Store, counters, open_store
from runyard.store.outage import IN_DOUBT, UNDONE
from tests.labs.postgres import Server
from tests.labs.severed import Severed

pytestmark = pytest.mark.component("postgresql")
PATIENCE_S = 90
OTHERS = "datname = current_database() AND pid <> pg_backend_pid()"
CUT_READERS = text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OTHERS}")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that others do not use."""
    made = Server()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def store(server: Server) -> Iterator[Store]:
    with server.database() as url:
        store = open_store(url)
        yield store
        store.close()


def take(store: Store) -> int:
    return store.write(lambda connection: counters.take(connection, "n")).result(PATIENCE_S)


def look(store: Store) -> int:
    with store.read() as connection:
        return counters.current(connection, "n")


@pytest.mark.parametrize("go_away", [Server.end, Server.kill9])
def test_what_is_asked_in_an_outage_is_refused_and_what_is_asked_after_it_is_done(
    server: Server, store: Store, go_away: Callable[[Server], None]
) -> None:
    assert (take(store), look(store)) == (1, 1)
    go_away(server)
    try:
        for ask in (take, take, look, look):  # on connections that were good, and on none
            with pytest.raises(errors.StoreError) as refused:
                ask(store)
            assert refused.value.status == 503 and refused.value.fix
            assert "\n" not in refused.value.message and str(server.port) not in refused.value.message
    finally:
        server.begin()
    assert (look(store), take(store), look(store)) == (1, 2, 2)


def test_every_connection_of_the_pool_is_replaced(store: Store) -> None:
    """Also those that nobody has used since."""
    everybody = threading.Barrier(4)

    def read() -> None:
        with store.read():
            everybody.wait(PATIENCE_S)

    def read_at_once() -> None:
        threads = [threading.Thread(target=read, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert not everybody.broken

    read_at_once()
    store.write(lambda connection: connection.execute(CUT_READERS).all()).result(PATIENCE_S)
    read_at_once()
    assert take(store) == 1


def test_a_connection_that_breaks_in_the_middle_hurts_all_of_the_commit_and_leaves_nothing(
    server: Server, store: Store
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    before = store.write(lambda _: begun.set() or go_on.wait(PATIENCE_S))
    assert begun.wait(PATIENCE_S)

    def break_off(connection: Connection) -> None:
        counters.take(connection, "n")
        server.kill9()
        server.begin()
        counters.take(connection, "n")

    futures = [store.write(work) for work in (lambda c: counters.take(c, "n"), break_off)]
    go_on.set()
    assert before.result(PATIENCE_S)
    told = [future.exception(PATIENCE_S) for future in futures]
    assert [getattr(error, "message", error) for error in told] == [UNDONE, UNDONE]
    assert (look(store), take(store)) == (0, 1)


def test_a_commit_of_which_nobody_knows_is_not_done_twice(server: Server) -> None:
    """PostgreSQL has committed, and its answer is lost: whoever asked is told, and decides."""
    with server.database() as url, Severed.to(url) as way:
        store = open_store(way.url)
        calls: list[list[str]] = []

        def work(connection: Connection, items: Sequence[str]) -> list[int]:
            calls.append(list(items))
            first = counters.take(connection, "n", len(items))
            way.sever()
            return [first + place for place in range(len(items))]

        series: BulkWork[str, int] = BulkWork(work=work, then=lambda _: None)
        begun, go_on = threading.Event(), threading.Event()
        before = store.write(lambda _: begun.set() or go_on.wait(PATIENCE_S))
        assert begun.wait(PATIENCE_S)
        futures = [store.write_in(series, item) for item in ("a", "b")]
        go_on.set()
        assert before.result(PATIENCE_S)
        told = [future.exception(PATIENCE_S) for future in futures]
        assert [getattr(error, "message", error) for error in told] == [IN_DOUBT, IN_DOUBT]
        assert calls == [["a", "b"]]
        assert take(store) == 3
        store.close()
