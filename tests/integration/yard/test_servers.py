"""Several servers on one PostgreSQL: who may join, who does what, and what each hears of the others."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from runyard import errors
from runyard.blobs import open_blobs
from runyard.broker.hints import Hints
from runyard.model.recipe import Recipe
from runyard.model.roles import Caller, NewToken, Role
from runyard.model.spec import RunSpec
from runyard.settings import Settings
from runyard.yard import Yard
from runyard.yard.servers.membership import Shared
from tests.labs.waiting import until

ALICE = Caller(name="alice", role=Role.MEMBER)
ADMIN = Caller(name="root", role=Role.ADMIN)
SESSIONS = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'runyard %'")


class Server:
    """A yard with the background parts that tie it to the others; `kill` leaves like a process that is gone."""

    def __init__(self, settings: Settings) -> None:
        self.yard = Yard.open(settings)
        self._stop, self._threads = threading.Event(), list[threading.Thread]()
        for part in self.yard.fleet.parts():
            self.start(part)

    @property
    def is_stopped(self) -> bool:
        return self._stop.is_set()

    def start(self, part: Callable[[threading.Event], None]) -> None:
        self._threads.append(threading.Thread(target=part, args=(self._stop,), daemon=True))
        self._threads[-1].start()

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        self.yard.close()


@pytest.fixture
def server(postgres_store: str, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    made: list[Server] = []

    def make(home: str, *, blobs: str | Path = tmp_path / "shared") -> Server:
        made.append(Server(Settings(home=tmp_path / home, store=postgres_store, blobs=str(blobs))))
        return made[-1]

    yield make
    for one in made:
        one.end()


def cut_sessions(server: Server) -> None:
    server.yard.store.write(lambda connection: connection.execute(SESSIONS).all()).result()


# --- joining ----------------------------------------------------------------------------------------------------------


def test_servers_that_share_their_blobs_are_let_in(server: Callable[..., Server]) -> None:
    one, two = server("one"), server("two")
    digest = one.yard.blobs.add([b"model"])
    assert two.yard.blobs.has(digest)


def test_a_server_whose_blobs_the_other_does_not_see_is_refused(server: Callable[..., Server]) -> None:
    server("one", blobs="")
    with pytest.raises(errors.ConfigError, match="another server of this yard is running") as refused:
        server("two", blobs="")
    assert "does not see the blobs in" in refused.value.message
    assert "`blobs`" in refused.value.fix


def test_a_copy_of_the_blobs_is_not_the_same(server: Callable[..., Server], tmp_path: Path) -> None:
    one = server("one", blobs="")
    one.yard.blobs.add([b"model"])
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    with pytest.raises(errors.ConfigError, match="does not see"):
        server("two", blobs="")


def test_servers_one_after_the_other_have_blobs_where_they_like(server: Callable[..., Server]) -> None:
    server("one", blobs="").end()
    server("two", blobs="")


def test_a_process_that_passes_by_is_held_to_the_same(
    server: Callable[..., Server], postgres_store: str, tmp_path: Path
) -> None:
    server("one")
    Yard.open(
        Settings(home=tmp_path / "two", store=postgres_store, blobs=str(tmp_path / "shared")), passing=True
    ).close()
    with pytest.raises(errors.ConfigError, match="another server"):
        Yard.open(Settings(home=tmp_path / "two", store=postgres_store), passing=True)


def test_a_server_that_was_cut_off_goes_when_others_came_meanwhile(
    server: Callable[..., Server], postgres_store: str, tmp_path: Path
) -> None:
    """Nobody could tell the newcomer at its start that there is another one."""
    one = server("one", blobs="")
    elsewhere = open_blobs(str(tmp_path / "elsewhere"), tmp_path)
    newcomer = Shared(one.yard.store, Hints(), elsewhere, "newcomer")
    newcomer._session.open()
    newcomer._session.enter()
    end = threading.Event()
    thread = threading.Thread(target=newcomer.parts()[0], args=(end,), daemon=True)
    thread.start()
    try:
        cut_sessions(one)
        until(lambda: one.is_stopped, "the end of a server that shares nothing with the others", timeout_s=120)
    finally:
        end.set()
        thread.join(60)
        newcomer.close()


def test_a_server_whose_blobs_are_away_joins_again_when_they_are_back(
    server: Callable[..., Server], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = server("one"), server("two")
    incoming, aside = tmp_path / "shared" / "blobs" / "incoming", tmp_path / "shared" / "aside"
    incoming.rename(aside)
    cut_sessions(one)
    until(lambda: "cannot join the others" in caplog.text, "a server that cannot write its question", timeout_s=60)
    aside.rename(incoming)

    def crosses(source: Server, target: Server) -> bool:
        event = heard(target, "sites:1")
        source.yard.hints.ring("sites:1")
        return event.wait(5)

    until(lambda: crosses(one, two) and crosses(two, one), "both hear each other again", timeout_s=120)
    assert not one.is_stopped and not two.is_stopped


# --- doing ------------------------------------------------------------------------------------------------------------


class Loop:
    def __init__(self, name: str) -> None:
        self.__name__ = name
        self.terms = 0
        self.is_on_duty = False

    def __call__(self, stop: threading.Event) -> None:
        self.terms += 1
        self.is_on_duty = True
        while not stop.is_set():
            stop.wait(0.05)
        self.is_on_duty = False


def test_one_server_does_it_and_another_takes_over(server: Callable[..., Server]) -> None:
    one, two = server("one"), server("two")
    first, second = Loop("clock"), Loop("clock")
    one.start(one.yard.fleet.by_one("clock", first))
    until(lambda: first.is_on_duty, "the first one's turn", timeout_s=60)
    two.start(two.yard.fleet.by_one("clock", second))
    two.start(two.yard.fleet.by_one("tickets", other := Loop("tickets")))
    until(lambda: other.is_on_duty, "a duty that nobody has", timeout_s=60)
    assert not second.is_on_duty
    one.end()
    until(lambda: second.is_on_duty, "the second one's turn", timeout_s=60)
    assert not first.is_on_duty


def test_a_lost_session_ends_every_term_before_others_begin(server: Callable[..., Server]) -> None:
    one, two = server("one"), server("two")
    loops = [Loop("clock"), Loop("clock")]
    for which, loop in zip((one, two), loops, strict=True):
        which.start(which.yard.fleet.by_one("clock", loop))
    until(lambda: any(loop.is_on_duty for loop in loops), "somebody's turn", timeout_s=60)
    for _ in range(3):
        terms = sum(loop.terms for loop in loops)
        cut_sessions(one)
        until(lambda terms=terms: sum(loop.terms for loop in loops) > terms, "a new term", timeout_s=60)  # type: ignore[misc]
        until(lambda: sum(loop.is_on_duty for loop in loops) == 1, "one on duty", timeout_s=60)


# --- hearing ----------------------------------------------------------------------------------------------------------


def heard(server: Server, topic: str) -> threading.Event:
    event = threading.Event()
    server.yard.hints.listen(topic, event.set)
    return event


def test_work_for_a_site_is_heard_everywhere(server: Callable[..., Server]) -> None:
    one, two = server("one"), server("two")
    one.yard.sites.ensure("local", "local").result()
    work, run = heard(two, "site:local"), heard(two, "run:1")
    one.yard.submit(ALICE, [RunSpec.parse({"command": ["true"]})]).result()
    assert work.wait(60) and run.wait(60)
    stop = heard(one, "run:1")
    two.yard.cancel(ALICE, [1]).result()
    assert stop.wait(60)


def test_events_are_found_although_nobody_said_so(server: Callable[..., Server]) -> None:
    """A server may be killed between its commit and its word to the others."""
    one, two = server("one"), server("two")
    one.yard.sites.ensure("local", "local").result()
    one.yard.hints.relay(None)
    work = heard(two, "site:local")
    one.yard.submit(ALICE, [RunSpec.parse({"command": ["true"]})]).result()
    assert work.wait(60)


def test_a_change_of_sites_is_heard_everywhere(server: Callable[..., Server]) -> None:
    one, two = server("one"), server("two")
    changed, resumed = heard(two, "sites"), heard(two, "site:local")
    one.yard.sites.ensure("local", "local").result()
    assert changed.wait(60) and resumed.wait(60)


def test_a_recipe_that_is_changed_at_one_server_is_the_one_that_another_starts(server: Callable[..., Server]) -> None:
    one, two = server("one"), server("two")
    one.yard.sites.ensure("local", "local").result()
    one.yard.recipes.put(ADMIN, "train", Recipe.parse({"command": ["old"]}), default=True).result()
    two.yard.recipes.request(ADMIN, None, [{}]).result()
    forgotten = heard(two, "recipes")
    one.yard.recipes.put(ADMIN, "train", Recipe.parse({"command": ["new"]}), default=True).result()
    assert forgotten.wait(60)
    (run,) = two.yard.recipes.request(ADMIN, None, [{}]).result().runs
    assert two.yard.get_run(run.id)["command"] == ["new"]


def test_a_token_that_is_revoked_at_one_server_is_worth_nothing_at_another(server: Callable[..., Server]) -> None:
    one, two = server("one"), server("two")
    made = one.yard.access.create(NewToken(name="bob", role=Role.MEMBER)).result()
    assert two.yard.authenticate(made["secret"]).name == "bob"
    forgotten = heard(two, "tokens")
    one.yard.access.revoke(made["id"]).result()
    assert forgotten.wait(60)
    with pytest.raises(errors.Unauthorized):
        two.yard.authenticate(made["secret"])


def test_each_server_has_its_owner_and_batches_of_its_own(server: Callable[..., Server]) -> None:
    one, two = server("one"), server("two")
    for home in ("one", "two"):
        secret = (one.yard.settings.home.parent / home / "token").read_text().strip()
        assert {server.yard.authenticate(secret).role for server in (one, two)} == {Role.ADMIN}
    prefixes = {server.yard._dispatcher.prefix for server in (one, two)}
    assert len(prefixes) == 2 and len({prefix.rpartition("-")[0] for prefix in prefixes}) == 1
