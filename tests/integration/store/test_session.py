"""How servers know of each other, on a real PostgreSQL: who lives, who has which lock, what one says to the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Connection, text

from runyard import errors
from runyard.store import Store, open_store
from runyard.store.session import ServerSession, key_of
from tests.labs.waiting import until

OF_SESSION = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = :label")


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    store = open_store(postgres_url)
    yield store
    store.close()


@pytest.fixture
def session(store: Store) -> Iterator[Callable[[str], ServerSession]]:
    made: list[ServerSession] = []

    def make(label: str) -> ServerSession:
        made.append(store.session(label))
        made[-1].open()
        return made[-1]

    yield make
    for one in made:
        one.close()


def cut(store: Store, label: str) -> None:
    """What a lost network, or the death of its process, is to a session."""
    store.write(lambda connection: connection.execute(OF_SESSION, {"label": label}).all()).result()


def test_a_lock_has_one_holder_and_goes_on_when_its_session_is_gone(
    store: Store, session: Callable[[str], ServerSession]
) -> None:
    one, two = session("one"), session("two")
    assert one.take(["clock", "tickets"]) == ["clock", "tickets"]
    assert two.take(["clock", "tickets", "replies"]) == ["replies"]
    one.leave(["tickets"])
    assert two.take(["clock", "tickets"]) == ["tickets"]
    cut(store, "one")
    until(lambda: two.take(["clock"]), "the lock of a session that is gone")
    with pytest.raises(errors.YardUnreachable):
        one.hear()
    one.open()
    assert one.take(["clock"]) == []


def test_who_lives(store: Store, session: Callable[[str], ServerSession]) -> None:
    one, two, visitor = session("one"), session("two"), session("visitor")
    assert one.others() == []
    one.enter()
    assert (one.others(), two.others(), visitor.others()) == ([], ["one"], ["one"])
    two.enter()
    assert (one.others(), two.others()) == (["two"], ["one"])
    cut(store, "one")
    until(lambda: two.others() == [], "a server that is gone")


def test_everybody_else_hears_what_one_says(session: Callable[[str], ServerSession]) -> None:
    one, two, three = session("one"), session("two"), session("three")
    one.tell(["ring sites", "events"])
    assert one.hear() == []
    for listener in (two, three):
        heard: list[str] = []
        until(lambda listener=listener, heard=heard: heard.extend(listener.hear()) or len(heard) >= 2, "both words")  # type: ignore[misc]
        assert sorted(heard) == ["events", "ring sites"]


def test_waiting_ends_with_a_word_or_a_wake(session: Callable[[str], ServerSession]) -> None:
    one, two = session("one"), session("two")
    out, into = os.pipe()
    try:
        one.tell(["events"])
        two.wait(60, out)
        assert two.hear() == ["events"]
        os.write(into, b"x")
        two.wait(60, out)
    finally:
        os.close(out)
        os.close(into)


def test_names_become_numbers_that_postgresql_takes(session: Callable[[str], ServerSession]) -> None:
    names = [f"site-{number}" for number in range(200)]
    assert len({key_of(name) for name in names}) == len(names)
    assert {key_of(name) < 0 for name in names} == {True, False}
    assert session("one").take(names) == names


def test_a_session_that_says_nothing_any_more_loses_its_locks(session: Callable[[str], ServerSession]) -> None:
    """The kernel of a process that is stopped keeps its connections alive."""
    one, two = session("one"), session("two")
    one.take(["clock"])
    until(lambda: two.take(["clock"]), "the lock of a session that does not speak", timeout_s=120, every_s=1)
    with pytest.raises(errors.YardUnreachable):
        one.hear()


def test_a_stopped_server_does_not_keep_the_turn_for_ever(store: Store) -> None:
    """A process that is stopped in the middle of a write, or whose machine is gone, says no farewell."""

    def limits(connection: Connection) -> list[str]:
        names = ("idle_in_transaction_session_timeout", "tcp_keepalives_idle", "tcp_keepalives_count")
        return [str(connection.execute(text(f"SHOW {name}")).scalar()) for name in names]

    assert store.write(limits).result() == ["1min", "5", "3"]
    with store.read() as connection:
        assert limits(connection) == ["1min", "5", "3"]
