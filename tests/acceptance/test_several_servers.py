"""Several servers of one yard on one PostgreSQL, all of them real processes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.acceptance.pool import SITE, Pool, Work
from tests.acceptance.servers import Door, by_duty, command, holder_of, pair
from tests.acceptance.witness import Witness, until
from tests.integration.broker.producers import Producer
from tests.labs.s3 import S3Lab
from tests.labs.yard import Yard

RUNS = 100


@pytest.fixture
def servers(make_yard: Callable[..., Yard], postgres_store: str, tmp_path: Path) -> tuple[Yard, Yard]:
    return pair(make_yard, store=postgres_store, blobs=tmp_path / "blobs")


@pytest.fixture(params=["directory", "s3"])
def servers_anywhere(
    request: pytest.FixtureRequest, make_yard: Callable[..., Yard], postgres_store: str, tmp_path: Path
) -> tuple[Yard, Yard]:
    """With each kind of place for blobs and logs."""
    if request.param == "directory":
        return pair(make_yard, store=postgres_store, blobs=tmp_path / "blobs")
    lab: S3Lab = request.getfixturevalue("s3_lab")()
    access = {"s3_key_id": lab.access.key_id, "s3_secret": lab.access.secret}
    return pair(make_yard, store=postgres_store, blobs=lab.location(lab.bucket()), **access)


def test_what_is_handed_in_at_one_server_is_done_followed_and_cancelled_at_another(
    servers_anywhere: tuple[Yard, Yard], tmp_path: Path
) -> None:
    here, there = servers_anywhere
    with Pool(there).agent("one"):
        script = f"echo first; until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo last; sleep 600"
        run = here.client().submit(["/bin/sh", "-c", script], site=SITE)
        with command(there, "logs", "-f", str(run.id)) as following:
            assert following.stdout is not None
            assert following.stdout.readline() == "first\n"
            (tmp_path / "go").touch()
            assert following.stdout.readline() == "last\n"
            with command(there, "wait", str(run.id)) as waiting:
                assert here.cli("cancel", str(run.id)).returncode == 0
                assert waiting.wait(120) != 0
            assert following.wait(120) in (0, 1)
        assert there.client().run(run.id).state == here.client().run(run.id).state == "cancelled"


def test_an_agent_that_waits_at_one_server_hears_of_work_at_the_other(servers: tuple[Yard, Yard]) -> None:
    here, there = servers
    Pool(there)
    with ThreadPoolExecutor(1) as executor:
        first = there.client().call("GET", "/agents/news", query={"site": SITE, "wait": 0})
        asked = {"site": SITE, "wait": 60, "seen": first["number"]}
        answer = executor.submit(there.client().call, "GET", "/agents/news", query=asked)
        here.client().submit(["true"], site=SITE)
        assert answer.result()["news"] is True


def test_a_server_that_is_killed_loses_nothing_and_another_does_its_duties(
    servers_anywhere: tuple[Yard, Yard], postgres_store: str, tmp_path: Path
) -> None:
    first, second = by_duty(servers_anywhere, postgres_store, "clock")
    pool = Pool(second)
    with Door.opened([first, second]) as door:
        pool.lead_to(door.url)
        with pool.agent("one", cpus=2), pool.agent("two", cpus=2):
            work = Work(second, tmp_path)
            with work.under_way(RUNS, at=first):
                pass
            first.kill9()
            until(lambda: holder_of(postgres_store, "clock") == second.pid, what="the second one on duty")
            work.until_done_once()
            first.start()
            work.give(4)
            work.until_done_once()
    assert holder_of(postgres_store, "clock") == second.pid


def test_a_site_that_the_yard_serves_goes_on_with_another_server(
    servers: tuple[Yard, Yard], postgres_store: str, tmp_path: Path
) -> None:
    """Both reach its directory, so the next one finds what runs there."""
    first, second = servers
    added = first.cli("site", "add", "shared", "--kind", "local", "--dir", str(second.home / "shared"))
    assert added.returncode == 0, added.stderr
    serving, other = by_duty(servers, postgres_store, "site-shared")
    witness = Witness(tmp_path)
    command = witness.command(f"until [ -e {tmp_path}/go ]; do sleep 0.05; done")
    run = other.client().submit(command, site="shared")
    until(lambda: witness.count("start"), what="the run's start")
    serving.kill9()
    until(lambda: holder_of(postgres_store, "site-shared") == other.pid, what="the other one serving it")
    (tmp_path / "go").touch()
    until(lambda: other.client().run(run.id).final, what="the run's end", timeout=120)
    assert other.client().run(run.id).state == "succeeded"
    assert witness.count("start") == witness.count("end") == {run.id: 1}


def test_requests_are_taken_and_answered_whichever_server_is_killed(
    broker_url: str, postgres_store: str, tmp_path: Path
) -> None:
    servers = [Yard(store=postgres_store, blobs=tmp_path / "blobs", local_site="off", broker=broker_url) for _ in "ab"]
    first, second = servers
    with contextlib.ExitStack() as stack:
        for server in servers:
            stack.callback(server.remove)
            (server.home / "config.toml").write_text('[intake.jobs]\nrecipe = "train"\n')
        producer = stack.enter_context(contextlib.closing(Producer(broker_url)))
        for queue in ("jobs", "answers"):
            producer.declare(queue)
        pool = Pool(first.start())
        witness = _add_recipe(first, tmp_path)
        until(lambda: holder_of(postgres_store, "replies-jobs") == first.pid, what="the first one on duty")
        second.start()
        pool.lead_to(second.url)
        with pool.agent("one", cpus=2):
            sent = {producer.send("jobs", {"lr": number}): number for number in range(40)}
            replies = dict([producer.answer(timeout_s=120)])
            first.kill9()
            while len(replies) < len(sent):  # one that was under way may come twice
                replies.update([producer.answer(timeout_s=180)])
        assert {name: reply["state"] for name, reply in replies.items()} == dict.fromkeys(sent, "succeeded")
        assert sorted(witness.count("start").values()) == [1] * len(sent)


def _add_recipe(yard: Yard, directory: Path) -> Witness:
    witness, recipe = Witness(directory), directory / "recipe.yaml"
    recipe.write_text(json.dumps({"command": witness.command("sleep 0.1"), "site": SITE}))
    done = yard.cli("recipe", "add", "train", "-f", str(recipe), "--default")
    assert done.returncode == 0, done.stderr
    return witness


def test_a_server_without_shared_blobs_is_refused_while_another_lives(
    make_yard: Callable[..., Yard], postgres_store: str
) -> None:
    first = make_yard(store=postgres_store, local_site="off")
    second = Yard(store=postgres_store, local_site="off")
    try:
        done = second.cli("up", timeout=120)
        told = [line for line in done.stderr.splitlines() if line.startswith(("error: ", "fix: "))]
        assert done.returncode == 2 and len(told) == 2, done.stderr
        assert f":{first.pid})" in told[0] and str(second.home) in told[0]
        assert "`blobs`" in told[1]
        first.stop()
        second.start()
        second.stop()
        first.start()
    finally:
        second.remove()


LATE = """
import sys, time
machine = time.time
time.time = lambda: machine() + 3600
sys.argv[0] = "runyard"
from runyard.cli.main import main
main()
"""


def test_a_server_whose_clock_is_wrong_gives_up_on_nobody(postgres_store: str, tmp_path: Path) -> None:
    """By its own clock, every agent that speaks to another server has been silent for an hour."""
    wrong, right = (Yard(store=postgres_store, blobs=tmp_path / "blobs", local_site="off") for _ in range(2))
    (wrong.home / "config.toml").write_text("lease = 30\nlost_after = 1800\n")
    try:
        wrong.start("-c", LATE)
        until(lambda: holder_of(postgres_store, "clock") == wrong.pid, what="the wrong one on duty")
        pool = Pool(right.start())
        with pool.agent("one"), pool.agent("two") as silent:
            runs = [right.client().submit(["sleep", "600"], site=SITE).id for _ in range(2)]
            until(lambda: _states(right, runs) == {"running"}, what="both running")
            silent.kill()
            until(lambda: any(_is_unreachable(right, run) for run in runs), what="a pass of the clock", timeout=120)
            assert sorted(_is_unreachable(right, run) for run in runs) == [False, True]
            assert _states(right, runs) == {"running"}
    finally:
        wrong.remove()
        right.remove()


def _states(yard: Yard, runs: list[int]) -> set[str]:
    return {run.state for run in yard.client().runs_by_id(runs).values()}


def _is_unreachable(yard: Yard, run: int) -> bool:
    return "unreachable" in [event["kind"] for event in yard.client().iter_events(run)]
