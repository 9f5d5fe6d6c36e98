"""PostgreSQL is restarted, killed and stopped under yards that live: nothing is lost, done twice, or left hanging."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import runyard
from runyard import errors
from runyard.store.outage import IN_DOUBT
from tests.acceptance.pool import SITE, Pool
from tests.acceptance.servers import Door, command, holder_of, pair
from tests.acceptance.witness import Witness, until
from tests.labs.postgres import Server
from tests.labs.yard import Yard

pytestmark = pytest.mark.component("postgresql")
OUTAGE_S = 20  # and a few more until it is back: less than what clients and leases put up with
PATIENCE_S = 300


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    """One that others do not use."""
    made = Server()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def store(postgres: Server) -> Iterator[str]:
    with postgres.database() as url:
        yield url


class Customer:
    """Hands in one run after the other, at one server after the other, and remembers what it was told of each."""

    def __init__(self, servers: Sequence[Yard], command: list[str]) -> None:
        self._clients, self._command = [server.client() for server in servers], command
        self._stop = threading.Event()
        self.accepted: dict[str, int] = {}
        self.refused: dict[str, errors.RunyardError] = {}

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        thread = threading.Thread(target=self._hand_in, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join(120)

    def until_served(self, count: int = 10) -> None:
        """So many more."""
        wanted = len(self.accepted) + count
        until(lambda: len(self.accepted) >= wanted, what=f"{count} more runs accepted", timeout=120)

    def check(self, found: Sequence[runyard.Run]) -> None:
        """Whatever was accepted is there once, and what was refused is not, unless that was said to be open."""
        seen = Counter(run.name for run in found)
        assert {name: seen[name] for name in self.accepted} == dict.fromkeys(self.accepted, 1)
        for name, error in self.refused.items():
            assert isinstance(error, errors.StoreError) and "\n" not in error.message, repr(error)
            assert seen[name] <= (error.message == IN_DOUBT), error.message

    def _hand_in(self) -> None:
        for number, client in enumerate(itertools.cycle(self._clients)):
            if self._stop.wait(0.1):
                return
            name = f"customer-{number}"
            try:
                self.accepted[name] = client.submit(self._command, name=name, site=SITE).id
            except errors.RunyardError as error:
                self.refused[name] = error


def patient(directory: Path, code: int = 0) -> list[str]:
    """A command that says that it has begun, waits for `go`, leaves something and ends."""
    wait = f"echo first; until [ -e {directory}/go ]; do sleep 0.05; done; echo last"
    return ["/bin/sh", "-c", f"{wait}; echo result > $OUTPUT_DIR/result; echo {code} >> {directory}/over; exit {code}"]


def left_by(yard: Yard, run: int) -> list[str]:
    return [output.path for output in yard.client().run(run).outputs()]


@pytest.mark.parametrize("go_away", [Server.end, Server.kill9], ids=["restarted", "killed"])
def test_postgresql_comes_back_at_once_under_two_servers_and_their_agents(
    make_yard: Callable[..., Yard], postgres: Server, store: str, tmp_path: Path, go_away: Callable[[Server], None]
) -> None:
    first, second = pair(make_yard, store=store, blobs=tmp_path / "blobs")
    pool, witness = Pool(first), Witness(tmp_path)
    customer = Customer([first, second], witness.command("sleep 0.2"))
    with contextlib.ExitStack() as stack:
        pool.lead_to(stack.enter_context(Door.opened([first, second])).url)
        for name in ("one", "two"):
            stack.enter_context(pool.agent(name, cpus=2))
        lasting = first.client().submit(patient(tmp_path), site=SITE)
        following = stack.enter_context(command(second, "logs", "-f", str(lasting.id)))
        waiting = stack.enter_context(ThreadPoolExecutor(1)).submit(lasting.wait, PATIENCE_S)
        assert following.stdout is not None and following.stdout.readline() == "first\n"
        with customer.busy():
            customer.until_served()
            go_away(postgres)
            postgres.begin()
            asked = [one.client().submit(witness.command("true"), site=SITE).id for one in (first, second)]
            customer.until_served()
        (tmp_path / "go").touch()
        assert following.communicate(timeout=120)[0] == "last\n"
        assert (following.returncode, waiting.result(120).state) == (0, "succeeded")
        until(lambda: all(run.final for run in first.client().iter_runs()), what="every run over", timeout=180)
        until(lambda: holder_of(store, "clock") in (first.pid, second.pid), what="somebody on duty")
    found = list(second.client().iter_runs())
    assert {(run.state, run.attempt) for run in found} == {("succeeded", 1)}
    customer.check(found)
    executed = dict.fromkeys({run.id for run in found} - {lasting.id}, 1)
    assert witness.count("start") == witness.count("end") == executed and executed.keys() >= {*asked}
    assert left_by(second, lasting.id) == ["result"]
    assert not [log for log in (first.log, second.log, pool.log("one"), pool.log("two")) if "Traceback" in log]


def test_postgresql_is_stopped_for_half_a_minute_and_runs_end_meanwhile(
    make_yard: Callable[..., Yard], postgres: Server, store: str, tmp_path: Path
) -> None:
    yard = make_yard(store=store, cpus=2)
    pool = Pool(yard)
    with contextlib.ExitStack() as stack:
        stack.enter_context(pool.agent("one"))
        (tmp_path / "over").touch()
        here = yard.client().submit(patient(tmp_path, code=0), site="local")
        there = yard.client().submit(patient(tmp_path, code=3), site=SITE)
        following = [stack.enter_context(command(yard, "logs", "-f", str(run.id))) for run in (here, there)]
        executor = stack.enter_context(ThreadPoolExecutor(2))
        assert [one.stdout and one.stdout.readline() for one in following] == ["first\n"] * 2
        until(lambda: {run.refresh().state for run in (here, there)} == {"running"}, what="both running")
        waiting = [executor.submit(yard.client().run(run.id).wait, PATIENCE_S) for run in (here, there)]
        postgres.end()
        since = time.monotonic()
        (tmp_path / "go").touch()
        until(lambda: sorted((tmp_path / "over").read_text().split()) == ["0", "3"], what="both over")
        _check_what_is_said_in_an_outage(yard)
        until(lambda: "PostgreSQL does not answer" in pool.log("one"), what="an agent that knows")
        time.sleep(max(0.0, since + OUTAGE_S - time.monotonic()))
        postgres.begin()
        later = yard.client().submit(["true"], site=SITE)
        assert [one.communicate(timeout=120)[0] for one in following] == ["last\n"] * 2
        assert [one.result(120).exit_code for one in waiting] == [0, 3]
        assert later.wait(120).state == "succeeded"
    found = {run.id: run for run in yard.client().iter_runs()}
    assert found.keys() == {here.id, there.id, later.id}, "what was refused left a trace"
    assert [(found[run.id].state, found[run.id].attempt) for run in (here, there)] == [("succeeded", 1), ("failed", 1)]
    assert [left_by(yard, run.id) for run in (here, there)] == [["result"]] * 2
    assert yard.cli("status").returncode == 0
    assert not [log for log in (yard.log, pool.log("one")) if "Traceback" in log]


def _check_what_is_said_in_an_outage(yard: Yard) -> None:
    with pytest.raises(errors.StoreError):
        yard.client().health()
    asked = (["status", "--json"], ["submit", "--", "true"], ["doctor", "--json"])
    with ThreadPoolExecutor(len(asked)) as executor:
        status, submit, doctor = executor.map(lambda words: yard.cli(*words), asked)
    assert (status.returncode, json.loads(status.stdout)["running"]) == (205, True), status
    for done in (status, submit):
        told = [line for line in done.stderr.splitlines() if line.startswith(("error: ", "fix: "))]
        assert done.returncode == 205 and len(told) == 2 and "PostgreSQL does not answer" in told[0], done
    verdicts = {finding["check"]: finding for finding in json.loads(doctor.stdout)}
    assert doctor.returncode == 1 and not doctor.stderr
    for check in ("store", "agent"):
        assert verdicts[check]["verdict"] == "fail" and "does not answer" in verdicts[check]["message"], verdicts[check]
    assert verdicts["port"]["verdict"] == "ok", verdicts["port"]
