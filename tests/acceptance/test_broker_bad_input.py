"""Whatever is wrong between a yard, its broker and those who ask: one sentence with its fix, and nothing is started."""

from __future__ import annotations

import contextlib
import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.pool import QUEUE, SITE
from tests.acceptance.witness import Witness, until
from tests.integration.bridges.rodan_side import BridgeYard, Side, both_sides
from tests.integration.broker.producers import Producer
from tests.labs.rabbitmq import RabbitLab
from tests.labs.rodan.job import REQUESTS
from tests.labs.yard import Yard, processes_of

INTAKE = '[intake.jobs]\nrecipe = "train"\n'
FAULTS = {
    "password": ": wrong password, or no such user",
    "vhost": "has no vhost 'nowhere'",
    "vhost of others": "may not use the vhost",
    "permission": "has no permission for the queue",
    "certificate": "is not trusted: ",
    "flags": "exists with other flags: x-max-length is ",
}


class Faulty:
    """A broker and, for each fault, the address that has it. `queue` is the one that is asked for there."""

    def __init__(self, lab: RabbitLab, queue: str) -> None:
        self.lab, self.vhost, self.queue = lab, lab.add_vhost(), queue

    def url(self, fault: str) -> str:
        if fault == "flags":
            body = {"durable": True, "arguments": {"x-max-length": 5}}
            self.lab.admin("PUT", "queues", self.vhost, self.queue, body=body)
        user, password = self._login(fault)
        return self.lab.url(
            "nowhere" if fault == "vhost" else self.vhost, tls=fault == "certificate", user=user, password=password
        )

    def _login(self, fault: str) -> tuple[str, str]:
        if fault == "vhost of others":
            return self.lab.add_user(self.lab.add_vhost())
        if fault == "permission":
            return self.lab.add_user(self.vhost, configure="^other$", read="^other$")
        return self.lab.user, "mistaken" if fault == "password" else self.lab.password


def assert_told(done: subprocess.CompletedProcess[str], sentence: str) -> None:
    """Once, with its fix, without a traceback and without a password."""
    said = done.stdout + done.stderr
    told = [line for line in said.splitlines() if line.startswith(("error: ", "fix: "))]
    assert [line.partition(":")[0] for line in told] == ["error", "fix"], said
    assert sentence in told[0], said
    assert said.count(sentence) == 1, said
    assert_quiet(said)
    assert done.returncode in (1, 2)


def assert_quiet(said: str) -> None:
    assert "Traceback" not in said and "mistaken" not in said, said


@pytest.fixture
def configured() -> Iterator[Callable[..., Yard]]:
    """`configured(text, broker=…)`: a yard that is not up; its agent for this machine has two slots."""
    made: list[Yard] = []

    def make(text: str = INTAKE, **settings: Any) -> Yard:
        made.append(Yard(cpus=2, **settings))
        (made[-1].home / "config.toml").write_text(text)
        return made[-1]

    yield make
    for yard in made:
        yard.remove()


# --- between us and the broker ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", FAULTS)
def test_a_yard_does_not_start_and_the_doctor_tells(
    broker: RabbitLab, configured: Callable[..., Yard], fault: str
) -> None:
    yard = configured(broker=Faulty(broker, "jobs").url(fault))
    assert_told(yard.cli("up"), FAULTS[fault])
    until(lambda: not yard.processes(), what="nothing of it stays")
    done = yard.cli("doctor", "--json")
    failed = [one for one in json.loads(done.stdout) if one["verdict"] == "fail"]
    assert done.returncode == 1
    assert_quiet(done.stdout + done.stderr)
    assert {one["check"] for one in failed} <= {"broker", "intake.jobs"}
    assert any(FAULTS[fault] in one["message"] and one["fix"] for one in failed), failed


def test_an_agent_does_not_start(broker: RabbitLab, configured: Callable[..., Yard]) -> None:
    yard, faulty = configured("").start(), Faulty(broker, QUEUE)
    assert yard.cli("site", "add", SITE, "--kind", "local", "--served-by", "agent").returncode == 0
    yard.client().submit(command=["true"], site=SITE)
    yard.env |= {"RUNYARD_URL": yard.url, "RUNYARD_TOKEN": yard.token}
    place = yard.home / "elsewhere"
    for fault, sentence in FAULTS.items():
        yard.env["RUNYARD_BROKER"] = faulty.url(fault)
        assert_told(yard.cli("agent", "--site", SITE, "--dir", str(place)), sentence)
    until(lambda: not processes_of(place), what="nothing of them stays")
    assert [run.state for run in yard.client().runs()] == ["queued"]


@pytest.mark.parametrize("fault", ["password", "flags"])
def test_cron_tells_and_what_is_here_runs(
    broker: RabbitLab, configured: Callable[..., Yard], fault: str, tmp_path: Path
) -> None:
    """Whatever is wrong between us and others: runs of this machine have nothing to do with it."""
    yard, witness = configured(f'daemon = "no"\n{INTAKE}'), Witness(tmp_path)
    yard.cli("submit", "--", *witness.command("true"))
    yard.env["RUNYARD_BROKER"] = Faulty(broker, "jobs").url(fault)

    def is_over() -> bool:
        assert_told(yard.cli("check"), FAULTS[fault])
        return yard.cli("ls", "--state", "succeeded", "-q").stdout != ""

    until(is_over, what="the run over", timeout=120)
    assert list(witness.count("start").values()) == [1]


def test_a_queue_that_may_not_be_read_is_told_in_the_log(broker: RabbitLab, configured: Callable[..., Yard]) -> None:
    """The queue is there, so the start tells nothing; the yard works, and says what it cannot have."""
    vhost = broker.add_vhost()
    broker.admin("PUT", "queues", vhost, "jobs", body={"durable": True})
    user, password = broker.add_user(vhost, read="^other$")
    yard = configured(broker=broker.url(vhost, user=user, password=password)).start()
    sentence = f"user '{user}' has no permission for the queue jobs on the broker"
    until(lambda: sentence in yard.log, what="the sentence")
    assert yard.client().submit(command=["true"]).wait(timeout=180).state == "succeeded"
    assert yard.log.count(sentence) == 1
    assert_quiet(yard.log)


# --- the bridge to Rodan ----------------------------------------------------------------------------------------------


@pytest.fixture
def side(broker: RabbitLab) -> Iterator[Side]:
    with both_sides(broker) as made:
        yield made


BRIDGE_FAULTS = ("password", "permission", "certificate", "flags")


@contextlib.contextmanager
def spoiled(side: Side, fault: str) -> Iterator[None]:
    """Rodan's vhost is `/`, and nobody else's: what is made there is taken away."""
    user, password = side.lab.user, side.lab.password
    if fault == "flags":
        side.lab.admin("DELETE", "queues", "/", REQUESTS)
        side.lab.admin("PUT", "queues", "/", REQUESTS, body={"durable": False, "arguments": {"x-max-length": 5}})
    if fault == "permission":
        user, password = side.lab.add_user("/", configure="^other$")
    if fault == "password":
        password = "mistaken"
    system = "/etc/ssl/certs/ca-certificates.crt"
    authority = system if fault == "certificate" else str(side.lab.authority)
    side.write_credentials(RABBITMQ_USER=user, RABBITMQ_PASSWORD=password, SSL_CERT_FILE=authority)
    try:
        yield
    finally:
        if fault == "flags":
            side.lab.admin("DELETE", "queues", "/", REQUESTS)


@pytest.mark.parametrize("fault", BRIDGE_FAULTS)
def test_a_bridge_does_not_start_and_its_check_tells(side: Side, fault: str) -> None:
    with spoiled(side, fault):
        assert_told(side.yard.cli(*side.yard.serving), FAULTS[fault])
        checked = side.yard.cli(*side.yard.serving, "--check", "--json")
    assert checked.returncode == 1
    assert_quiet(checked.stdout + checked.stderr)
    failed = [one for one in json.loads(checked.stdout) if one["verdict"] == "fail"]
    assert any(FAULTS[fault] in one["message"] and one["fix"] for one in failed), failed
    until(lambda: not side.yard.processes(), what="nothing of it stays")


def test_an_intake_and_a_bridge_do_not_take_from_the_same_queue(side: Side) -> None:
    url = side.lab.url("/", tls=True)
    config = f'broker_ca_file = "{side.lab.authority}"\n[intake.pages]\nqueue = "{REQUESTS}"\ndurable = false\n'
    (side.yard.home / "config.toml").write_text(config)
    side.yard.env["RUNYARD_BROKER"] = url
    sentence = f"[intake.pages] and [bridge.rodan] would receive requests from the same queue {REQUESTS}"
    assert_told(side.yard.cli(*side.yard.serving), sentence)
    checked = json.loads(side.yard.cli(*side.yard.serving, "--check", "--json").stdout)
    (found,) = [one for one in checked if one["check"] == REQUESTS]
    assert (found["verdict"], found["message"]) == ("fail", sentence)


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (f'{INTAKE}[intake.others]\nqueue = "jobs"\n', "[intake.jobs] and [intake.others] would receive requests from"),
        ("[intake.rodan]\nqueue = 'pages'\n[bridge.rodan]\n", "[intake.rodan] and [bridge.rodan] have the same name"),
    ],
    ids=["queue", "name"],
)
def test_two_tables_do_not_mean_the_same(side: Side, config: str, sentence: str) -> None:
    yard: BridgeYard = side.yard
    (yard.home / "config.toml").write_text(config)
    yard.env["RUNYARD_BROKER"] = side.lab.url("/")
    assert_told(yard.cli(*yard.serving), sentence)


# --- between us and those who ask -------------------------------------------------------------------------------------

RECIPE = {
    "schema": {"type": "object", "required": ["lr"], "properties": {"lr": {"type": "number", "maximum": 1}}},
    "bounds": {"cpus": 2},
    "resources_from": {"cpus": "cpus"},
}
BAD = {
    "not JSON": (b"train!", "the body is not JSON: line 1, column 1: Expecting value"),
    "not an object": (b"[1]", "the body must be a JSON object"),
    "outside the schema": (b'{"lr": 5}', "params.lr: 5 is more than the maximum 1"),
    "missing": (b"{}", "params.lr: is missing"),
    "above the bounds": (
        b'{"lr": 0.1, "cpus": 3}', "params.cpus: 3 cpus is more than the 2 cpus that recipe 'train' allows",
    ),
}  # fmt: skip


class Asked:
    """A yard with a recipe, its intake, and a program that asks at each door."""

    def __init__(self, yard: Yard, producer: Producer, directory: Path) -> None:
        self.yard, self.producer, self.witness = yard, producer, Witness(directory)
        path = directory / "recipe.json"
        path.write_text(json.dumps({**RECIPE, "command": self.witness.command("true")}))
        added = yard.cli("recipe", "add", "train", "-f", str(path), "--default")
        assert added.returncode == 0, added.stderr

    def post(self, path: str, body: bytes) -> str:
        """The message of the error; an error has a fix or says it all."""
        headers = {"X-Token": self.yard.token, "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.yard.url}{path}", body, headers)
        with pytest.raises(urllib.error.HTTPError) as caught, urllib.request.urlopen(request):
            pass
        with caught.value as answer:
            assert 400 <= answer.code < 500
            return str(json.loads(answer.read())["error"]["message"])

    def send(self, body: bytes) -> tuple[str, str]:
        """What the sender is told, and the reason with which the message was put aside."""
        sent = self.producer.send("jobs", body)
        got, reply = self.producer.answer()
        assert (got, list(reply)) == (sent, ["error"])
        properties, dead = self.producer.receive("jobs.dead")
        assert dead == body
        return str(reply["error"]), str(properties.headers["x-runyard-reason"])

    def runs(self) -> int:
        return sum(self.yard.client().health()["runs"].values())


@pytest.fixture
def asked(broker_url: str, configured: Callable[..., Yard], tmp_path: Path) -> Iterator[Asked]:
    with contextlib.closing(Producer(broker_url)) as producer:
        for queue in ("jobs", "answers"):
            producer.declare(queue)
        yield Asked(configured(broker=broker_url).start(), producer, tmp_path)


def test_bad_requests_are_one_sentence_at_every_door_and_start_nothing(asked: Asked) -> None:
    for body, sentence in BAD.values():
        for path in ("/request", "/request/train", "/api/v1/recipes/train/runs"):
            assert asked.post(path, body) == sentence
        told, reason = asked.send(body)
        assert told == sentence and reason.startswith(sentence)
    for path in ("/request/trian", "/api/v1/recipes/trian/runs"):
        assert asked.post(path, b"{}") == "there is no recipe 'trian'"
    assert asked.runs() == 0
    assert_quiet(asked.yard.log)
    good = asked.producer.send("jobs", {"lr": 0.1})
    assert asked.producer.answer()[0] == good, "nothing holds up the messages behind"
    assert list(asked.witness.count("start").values()) == [1]


def test_requests_wait_for_a_recipe_that_is_not_there(asked: Asked) -> None:
    assert asked.yard.cli("recipe", "remove", "train").returncode == 0
    asked.producer.send("jobs", {"lr": 0.1})
    sentence = "there is no recipe 'train'"
    until(lambda: f"requests of queue jobs wait: {sentence}" in asked.yard.log, what="the sentence")
    found = [one for one in json.loads(asked.yard.cli("doctor", "--json").stdout) if one["check"] == "intake.jobs"]
    assert [(one["verdict"], one["message"]) for one in found if one["verdict"] == "fail"] == [
        ("fail", f"{sentence}, so requests wait")
    ]
    assert asked.runs() == 0
    assert_quiet(asked.yard.log)


def test_the_doctor_knows_the_intakes(asked: Asked) -> None:
    def said() -> list[tuple[str, str]]:
        found = json.loads(asked.yard.cli("doctor", "--json").stdout)
        return [(one["verdict"], one["message"]) for one in found if one["check"] == "intake.jobs"]

    well = [("ok", "queue jobs: 0 requests waiting, 1 consumers"), ("ok", "no message was rejected")]
    until(lambda: said() == well, what="somebody who takes requests")
    asked.producer.send("jobs", b"train!")
    asked.producer.answer()
    until(lambda: said()[1] == ("warn", "1 rejected messages are in jobs.dead"), what="a warning")
    asked.yard.stop()
    asked.producer.send("jobs", {"lr": 0.1})
    alone = ("warn", "queue jobs: 1 requests waiting, 0 consumers")
    until(lambda: said()[0] == alone, what="a request that nobody takes")
