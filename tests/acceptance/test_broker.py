"""A yard and its agents with a message broker between them, all of them real processes."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.witness import Witness, until
from tests.labs.rabbitmq import RabbitLab
from tests.labs.yard import Yard

SITE = "pool"
QUEUE = f"runyard.tickets.{SITE}"
RUNS = 40


class Pool:
    """Agents of one site, each in a directory of its own, as on machines of their own."""

    def __init__(self, yard: Yard, **variables: str) -> None:
        self._yard = yard
        added = yard.cli("site", "add", SITE, "--kind", "local", "--served-by", "agent")
        assert added.returncode == 0, added.stderr
        token = yard.cli("token", "create", "pool-agent", "--role", "agent", "--site", SITE, "-q").stdout.strip()
        self._env = {**yard.env, "RUNYARD_URL": yard.url, "RUNYARD_TOKEN": token, **variables}

    @contextlib.contextmanager
    def agent(self, name: str, *, cpus: int = 1) -> Iterator[subprocess.Popen[bytes]]:
        home = self._yard.home / name  # below the yard's, so that its removal ends what is left
        home.mkdir(exist_ok=True)
        env = {**self._env, "RUNYARD_HOME": str(home), "RUNYARD_CPUS": str(cpus)}
        command = self._yard.command("agent", "--site", SITE, "--dir", str(home / "site"))
        with (home / "agent.log").open("ab") as log:
            process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)

    def log(self, name: str) -> str:
        return (self._yard.home / name / "agent.log").read_text()


@pytest.fixture
def lab(rabbitmq_lab: Callable[..., RabbitLab]) -> RabbitLab:
    return rabbitmq_lab()


@pytest.fixture
def url(lab: RabbitLab) -> str:
    return lab.url(lab.add_vhost())


def submit(yard: Yard, count: int, *command: str) -> list[int]:
    with yard.client() as client:
        return [run.id for run in client.submit_many([{"command": list(command), "site": SITE}] * count)]


def all_ended(yard: Yard, ids: list[int]) -> bool:
    with yard.client() as client:
        return all(run.final for run in client.runs_by_id(ids).values())


def consumers(lab: RabbitLab, url: str) -> int:
    """Agents that listen, by the broker's own word."""
    found = lab.admin("GET", "consumers", url.rpartition("/")[2])
    return len([one for one in found if one["queue"]["name"] == QUEUE])


def test_two_agents_share_the_work_and_everything_runs_once(
    lab: RabbitLab, url: str, make_yard: Callable[..., Yard], tmp_path: Path
) -> None:
    yard, witness = make_yard(cpus=1, broker=url), Witness(tmp_path)
    pool = Pool(yard)
    with pool.agent("one"), pool.agent("two"):
        until(lambda: consumers(lab, url) == 2, what="both agents listening", timeout=120)
        ids = submit(yard, RUNS, *witness.command("sleep 0.1"))
        until(lambda: all_ended(yard, ids), what="every run over", timeout=180)
    assert set(witness.count("start").values()) == {1}
    assert set(witness.count("start")) == set(ids)


def test_a_full_agent_does_not_listen_and_holds_nothing(
    lab: RabbitLab, url: str, make_yard: Callable[..., Yard]
) -> None:
    yard = make_yard(cpus=1, broker=url)
    vhost = url.rpartition("/")[2]
    with Pool(yard).agent("one"):
        until(lambda: consumers(lab, url) == 1, what="the agent listening", timeout=120)
        ids = submit(yard, 2, "sleep", "600")
        until(lambda: consumers(lab, url) == 0, what="a full agent that does not listen", timeout=120)
        until(lambda: lab.queue(vhost, QUEUE).get("messages_unacknowledged") == 0, what="nothing held")
        yard.cli("cancel", *map(str, ids))
        until(lambda: consumers(lab, url) == 1, what="the agent listening again", timeout=120)


@pytest.mark.parametrize("fault", ["password", "vhost"])
def test_a_broker_that_says_no_keeps_the_yard_from_starting(
    lab: RabbitLab, url: str, fault: str, tmp_path: Path
) -> None:
    wrong = {"password": url.replace(lab.password, "mistaken"), "vhost": f"{url}x"}[fault]
    yard = Yard(below=tmp_path, broker=wrong)
    done = yard.cli("up")
    assert done.returncode == 1
    told = [line for line in done.stderr.splitlines() if line.startswith(("error: ", "fix: "))]
    assert [line.partition(":")[0] for line in told] == ["error", "fix"]
    assert "mistaken" not in done.stderr


def test_a_broker_that_is_down_does_not_keep_anybody(
    lab: RabbitLab, url: str, make_yard: Callable[..., Yard], tmp_path: Path
) -> None:
    lab.kill("n1")
    yard, witness = make_yard(cpus=1, broker=url), Witness(tmp_path)
    with Pool(yard).agent("one"):
        ids = submit(yard, 3, *witness.command("true"))
        until(lambda: all_ended(yard, ids), what="runs without a broker", timeout=120)
        lab.start_node("n1")
        until(lambda: consumers(lab, url) == 1, what="the agent listening", timeout=120)
    assert set(witness.count("start").values()) == {1}
