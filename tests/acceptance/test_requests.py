"""Other programs ask through the broker; a real yard runs what they ask for and answers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.witness import Witness, until
from tests.integration.broker.producers import Producer
from tests.integration.broker.receivers import Receiver
from tests.labs.rabbitmq import RabbitLab
from tests.labs.yard import Yard

QUEUES = ("jobs", "answers")


@pytest.fixture
def configured(broker_url: str, tmp_path: Path) -> Iterator[Callable[..., Yard]]:
    """`configured(text)` is a yard of that configuration, with the recipe `train`, not started."""
    made: list[Yard] = []

    def make(text: str, **settings: object) -> Yard:
        made.append(Yard(cpus=1, broker=broker_url, **settings))
        (made[-1].home / "config.toml").write_text(text)
        return made[-1]

    yield make
    for yard in made:
        yard.remove()


@pytest.fixture
def producer(broker_url: str) -> Iterator[Producer]:
    with contextlib.closing(Producer(broker_url)) as made:
        for queue in QUEUES:
            made.declare(queue)
        yield made


def add_recipe(yard: Yard, tmp_path: Path, script: str) -> Witness:
    witness = Witness(tmp_path)
    recipe = tmp_path / "recipe.yaml"
    told = {"command": witness.command(script), "reply": {"inline": "1K", "values": {"lr": "params.json:lr"}}}
    recipe.write_text(json.dumps(told))
    done = yard.cli("recipe", "add", "train", "-f", str(recipe), "--default")
    assert done.returncode == 0, done.stderr
    return witness


SCRIPT = 'cp "$RUNYARD_PARAMS" "$OUTPUT_DIR/params.json"; head -c 5000 /dev/zero > "$OUTPUT_DIR/large"'


def test_requests_survive_a_yard_that_is_killed_again_and_again(
    configured: Callable[..., Yard], producer: Producer, broker: RabbitLab, broker_url: str, tmp_path: Path
) -> None:
    yard = configured('[intake.jobs]\nrecipe = "train"\n').start()
    witness = add_recipe(yard, tmp_path, SCRIPT)
    sent = []
    for number in range(30):
        sent.append(producer.send("jobs", {"lr": number}))
        if number % 10 == 5:
            yard.kill9()
            yard.start()
    replies = dict(producer.answer(timeout_s=180) for _ in sent)
    assert [replies[name]["lr"] for name in sent] == list(range(30))
    assert set(witness.count("start").values()) == {1}
    assert len(witness.count("start")) == 30
    (large,) = [file for file in replies[sent[0]]["outputs"] if file["path"] == "large"]
    with urllib.request.urlopen(
        large["url"].replace(large["url"].split("/")[2], yard.url.removeprefix("http://"))
    ) as got:
        assert f"sha256:{hashlib.sha256(got.read()).hexdigest()}" == large["digest"]


def test_results_wait_for_a_broker_that_was_killed(
    configured: Callable[..., Yard], broker: RabbitLab, broker_url: str, tmp_path: Path
) -> None:
    yard = configured('[intake.jobs]\nrecipe = "train"\n').start()
    go = tmp_path / "go"
    witness = add_recipe(yard, tmp_path, f"until [ -e {go} ]; do sleep 0.1; done")
    with contextlib.closing(Producer(broker_url)) as producer:
        for queue in QUEUES:
            producer.declare(queue)
        sent = producer.send("jobs", {"lr": 1}, delivery_mode=2)
    until(lambda: witness.count("start"), what="the run started")
    client = yard.client()
    broker.kill("n1")
    go.touch()
    until(lambda: [run.state for run in client.runs()] == ["succeeded"], what="the run over")
    broker.start_node("n1")
    with contextlib.closing(Producer(broker_url)) as producer:
        producer.declare("answers")  # a broker that is killed may forget what was declared a moment before
        got, reply = producer.answer(timeout_s=240)
    assert (got, reply["state"]) == (sent, "succeeded")
    assert list(witness.count("start").values()) == [1]


def test_replies_are_listed_and_sent_again(configured: Callable[..., Yard], producer: Producer, tmp_path: Path) -> None:
    yard = configured('[intake.jobs]\nrecipe = "train"\n').start()
    add_recipe(yard, tmp_path, SCRIPT)
    producer.send("jobs", {"lr": 1}, correlation_id="first")
    producer.send("jobs", b"nonsense", correlation_id="second")
    answers = dict(producer.answer() for _ in range(2))
    assert answers["second"] == {"error": "the body is not JSON: line 1, column 1: Expecting value"}
    until(lambda: states(yard) == {"first": "replied", "second": "replied"}, what="both noted")
    shown = yard.cli("reply", "list")
    assert "refused: the body is not JSON" in shown.stdout
    number = next(row["id"] for row in listed(yard) if row["correlation_id"] == "first")
    assert yard.cli("reply", "resend", str(number)).stdout == f"resent: {number}\n"
    assert producer.answer()[0] == "first"
    missing = yard.cli("reply", "resend", "99")
    assert (missing.returncode, missing.stderr.splitlines()[0]) == (1, "error: there is no request 99")
    assert yard.cli("reply", "resend").returncode == 2


def listed(yard: Yard) -> list[dict[str, object]]:
    return list(json.loads(yard.cli("reply", "list", "--json").stdout))


def states(yard: Yard) -> dict[object, object]:
    return {row["correlation_id"]: row["state"] for row in listed(yard)}


def test_cron_takes_requests_and_answers_them(
    configured: Callable[..., Yard], producer: Producer, tmp_path: Path
) -> None:
    """Nothing stays running: each check takes what is there, and a later one tells what became of it."""
    yard = configured('daemon = "no"\n[intake.jobs]\nrecipe = "train"\n')
    witness = add_recipe(yard, tmp_path, SCRIPT)
    sent = producer.send("jobs", {"lr": 3})

    def answered() -> bool:
        done = yard.cli("check", "--limit", "20")
        assert done.returncode == 0, done.stderr
        return not producer.is_empty("answers")

    until(answered, what="an answer", timeout=240)
    producer.channel.close()
    with contextlib.closing(Producer(str(yard.env["RUNYARD_BROKER"]))) as other:
        got, reply = other.answer()
    assert (got, reply["lr"]) == (sent, 3)
    assert list(witness.count("start").values()) == [1]


def test_listeners_are_told(configured: Callable[..., Yard], broker_url: str, tmp_path: Path) -> None:
    """By the exchange and by a webhook, of what happens while the yard is killed, too."""
    with contextlib.closing(Receiver()) as receiver, contextlib.closing(Producer(broker_url)) as producer:
        producer.channel.exchange_declare("runyard.events", "topic", durable=True)
        producer.channel.queue_bind(producer.declare("events"), "runyard.events", "run.*")
        (tmp_path / "secret").write_text("hush")
        yard = configured(f'[webhook.lab]\nurl = "{receiver.url}"\nsecret_file = "{tmp_path}/secret"\n').start()
        go = tmp_path / "go"
        yard.cli("submit", "--", "sh", "-c", f"until [ -e {go} ]; do sleep 0.1; done")
        until(lambda: list(dict.fromkeys(receiver.events)) == LIFE[:3], what="the start told")
        yard.kill9()
        go.touch()
        yard.start()
        until(lambda: LIFE[-1] in receiver.events, what="the end told")
        assert list(dict.fromkeys(receiver.events)) == LIFE
        told: dict[str, None] = {}  # once each: what is told again after a doubt tells nothing new
        while len(told) < 3:
            told.setdefault(json.loads(producer.receive("events")[1])["event"])
        assert list(told) == LIFE[:3]


LIFE = ["run.queued", "run.starting", "run.running", "run.succeeded"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[intake.jobs]\nformat = \"taks\"\n", "intake.jobs.format: the format 'taks' is not known"),
        ("[intake.jobs]\nrecipee = \"train\"\n", "intake.jobs: unknown field 'recipee'"),
        ("[intake.jobs]\nreply_limit = \"much\"\n", "intake.jobs.reply_limit: 'much' is not a size"),
        ("intake = 3\n", "intake: must be tables"),
        ("[webhook.lab]\nurl = \"ftp://x\"\n", "webhook.lab.url: this is not a URL"),
        ("[webhook.lab]\nurl = \"http://x\"\nstates = [\"done\"]\n", "webhook.lab.states[0]: 'done' is not known"),
        ("[intake.jobs]\nbroker = \"amqp://nobody@localhost\"\n", "there is no password for user 'nobody'"),
    ],
)  # fmt: skip
def test_a_wrong_configuration_is_one_sentence(configured: Callable[..., Yard], text: str, sentence: str) -> None:
    done = configured(text).cli("up")
    told = [line for line in done.stderr.splitlines() if line.startswith(("error: ", "fix: "))]
    assert done.returncode == 2
    assert sentence in told[0]
    assert len(told) == 2
