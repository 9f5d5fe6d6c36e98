"""Requests through a real broker into a real store, and the replies: once each, whatever happens in between."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard.broker.amqp import Connection
from runyard.model.intake import Intake
from runyard.model.recipe import Recipe
from tests.integration.broker.desks import BODY_LIMIT, RECIPE, Office, finish, run_ids, shown
from tests.integration.broker.producers import Producer
from tests.integration.yard.conftest import Driver
from tests.labs.rabbitmq import RabbitLab
from tests.labs.waiting import until

Connect = Callable[..., Connection]
DOOMED = Path(__file__).parent / "doomed_desk.py"


# --- the usual way ----------------------------------------------------------------------------------------------


def test_a_request_becomes_a_run_and_its_result_comes_back(
    driver: Driver, office: Callable[..., Office], producer: Producer, lab: RabbitLab, vhost: str
) -> None:
    office()
    sent = producer.send("tasks", {"lr": 0.1})
    (run,) = finish(driver, outputs={"model.bin": b"weights"})
    got, reply = producer.answer()
    digest = f"sha256:{hashlib.sha256(b'weights').hexdigest()}"
    inside = base64.b64encode(b"weights").decode()
    assert got == sent
    assert reply == {
        "id": run, "state": "succeeded", "reason": None, "detail": None, "exit_code": 0,
        "outputs": [{"path": "model.bin", "size": 7, "digest": digest, "content": inside}],
    }  # fmt: skip
    assert driver.yard.get_run(run)["params"] == {"lr": 0.1}
    assert driver.yard.get_run(run)["owner"] == "intake-tasks"
    until(lambda: lab.queue(vhost, "tasks").get("messages", 1) == 0, "the request acknowledged", timeout_s=60)


def test_a_grid_is_answered_once_when_all_its_runs_are_over(
    driver: Driver, office: Callable[..., Office], producer: Producer
) -> None:
    office()
    sent = producer.send("tasks", {"_run_group_type": "grid", "lr": [0.1, 0.2, 0.3]})
    until(lambda: len(run_ids(driver)) == 3, "three runs")
    finish(driver)
    assert shown(driver)[0]["state"] == "running"
    finish(driver)
    got, reply = producer.answer()
    assert got == sent
    assert [run["state"] for run in reply["runs"]] == ["succeeded"] * 3


def test_a_failed_run_is_told_with_its_reason(
    driver: Driver, office: Callable[..., Office], producer: Producer
) -> None:
    office()
    producer.send("tasks", {"lr": 0.1})
    (run,) = finish(driver, exit_code=3)
    _, reply = producer.answer()
    assert (reply["state"], reply["reason"], reply["exit_code"]) == ("failed", "error", 3)
    assert reply["error"].startswith(f"run {run} failed: error")


def test_a_program_without_a_queue_is_answered_once(
    driver: Driver, office: Callable[..., Office], producer: Producer
) -> None:
    """By RabbitMQ's direct reply-to, whose name is no queue that anybody can find."""
    office()
    replies: list[bytes] = []
    producer.channel.basic_consume("amq.rabbitmq.reply-to", lambda *got: replies.append(got[3]), auto_ack=True)
    producer.send("tasks", {"lr": 0.1}, reply_to="amq.rabbitmq.reply-to")
    (run,) = finish(driver)
    until(lambda: producer.channel.connection.process_data_events(0.1) or replies, "the reply")
    assert json.loads(replies[0]) == driver_reply(run)
    replied = until(lambda: [row for row in shown(driver) if row["state"] == "replied"], "it noted")[0]
    assert replied["tries"] == 0


def test_nobody_waits_for_a_request_without_reply_to(
    driver: Driver, office: Callable[..., Office], producer: Producer
) -> None:
    office()
    producer.send("tasks", {"lr": 0.1}, reply_to=None, correlation_id=None)
    finish(driver)
    assert [row["state"] for row in shown(driver)] == ["unwanted"]


# --- the same message again -------------------------------------------------------------------------------------


def test_the_same_message_again_starts_nothing_and_is_answered_again(
    driver: Driver, office: Callable[..., Office], producer: Producer
) -> None:
    office()
    for _ in range(2):
        producer.send("tasks", {"lr": 0.1}, correlation_id="c1")
    (run,) = finish(driver)
    assert producer.answer()[1]["id"] == run
    producer.send("tasks", {"lr": 0.1}, correlation_id="c1")
    assert producer.answer()[1]["id"] == run
    assert run_ids(driver) == [run]
    until(lambda: shown(driver)[0]["state"] == "replied", "the second reply noted")


def test_another_request_under_a_name_that_is_taken_is_refused(
    driver: Driver, office: Callable[..., Office], producer: Producer
) -> None:
    office()
    producer.send("tasks", {"lr": 0.1}, correlation_id="c1")
    until(lambda: run_ids(driver), "the first run")
    producer.send("tasks", {"lr": 0.2}, correlation_id="c1")
    _, reply = producer.answer()
    assert reply == {"error": "correlation id c1 was used for request 1, which asks for something else"}
    assert len(run_ids(driver)) == 1
    producer.receive("tasks.dead")


def test_what_was_stored_and_not_acknowledged_starts_nothing_when_it_comes_again(
    driver: Driver, office: Callable[..., Office], producer: Producer, lab: RabbitLab, vhost: str
) -> None:
    """The connection is cut after the commit and before the acknowledgement; the message has no name at all."""
    relay = lab.relay()
    producer.send("tasks", {"lr": 0.1}, correlation_id=None)
    with cut_at_commit(driver, relay.cut):
        first = office(url=lab.url(vhost, port=relay.port))
        until(lambda: run_ids(driver), "the request stored")
        until(lambda: not first.connection.is_open, "the cut noticed")
    relay.mend()
    finish(driver)
    producer.answer()
    until(lambda: lab.queue(vhost, "tasks").get("messages", 1) == 0, "the request acknowledged", timeout_s=60)
    assert len(run_ids(driver)) == 1


@contextlib.contextmanager
def cut_at_commit(driver: Driver, cut: Callable[[], None]) -> Iterator[None]:
    """Rung after the commit of a request, before anybody else hears of it."""
    done = threading.Event()

    def once() -> None:
        if not done.is_set():
            done.set()
            cut()

    end = driver.yard.hints.listen("replies", once)
    yield
    end()


def test_equal_requests_without_a_name_are_two(
    driver: Driver, office: Callable[..., Office], producer: Producer
) -> None:
    office()
    for _ in range(2):
        producer.send("tasks", {"lr": 0.1}, correlation_id=None)
    until(lambda: len(run_ids(driver)) == 2, "two runs")


def test_a_message_without_a_name_is_not_taken_for_one_with_a_name(
    driver: Driver, office: Callable[..., Office], producer: Producer, lab: RabbitLab, vhost: str
) -> None:
    """Its first delivery comes to nothing, so it is marked as delivered again."""
    producer.send("tasks", {"lr": 0.1}, correlation_id=None)
    method, _, _ = producer.channel.basic_get("tasks")
    producer.channel.basic_nack(method.delivery_tag, requeue=True)
    producer.send("tasks", {"lr": 0.1}, correlation_id="c1")
    office()
    until(lambda: len(run_ids(driver)) == 2, "two runs")


def test_a_message_id_is_a_name(driver: Driver, office: Callable[..., Office], producer: Producer) -> None:
    office()
    for number in ("m1", "m1", "m2"):
        producer.send("tasks", {"lr": 0.1}, correlation_id=None, message_id=number)
    until(lambda: len(run_ids(driver)) == 2, "two runs")
    finish(driver)
    assert len([producer.answer() for _ in range(2)]) == 2
    assert len(run_ids(driver)) == 2


# --- bad input: one sentence each, nothing started ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"\xff\xfe", "the body is not UTF-8: byte 0 is 0xff"),
        (b"train!", "the body is not JSON: line 1, column 1: Expecting value"),
        (b"[1]", "the body must be a JSON object"),
        ({}, "params.lr: is missing"),
        ({"lr": 5}, "params.lr: 5 is more than the maximum 1"),
        (b'{"lr": ["half a character: \\ud800"]}', 'params.lr: ["half a character: ?"] is not of type number'),
        ({"_run_group_type": "tree", "lr": 0.1}, "_run_group_type: 'tree' is not known"),
        ({"lr": 0.1, "x": "y" * BODY_LIMIT}, "the body has 100,020 bytes, more than 100,000"),
    ],
)
def test_what_cannot_be_used_is_put_aside_with_the_reason_and_answered(
    driver: Driver, office: Callable[..., Office], producer: Producer, body: Any, sentence: str
) -> None:
    office()
    sent = producer.send("tasks", body)
    producer.send("tasks", {"lr": 0.1}, reply_to=None)
    got, reply = producer.answer()
    assert (got, list(reply)) == (sent, ["error"])
    assert reply["error"].startswith(sentence)
    properties, dead = producer.receive("tasks.dead")
    assert dead == (body if isinstance(body, bytes) else json.dumps(body).encode())
    assert properties.headers["x-runyard-reason"].startswith(sentence)
    assert properties.correlation_id == sent
    until(lambda: len(run_ids(driver)) == 1, "the message behind it taken")


def test_a_refused_request_may_come_again(driver: Driver, office: Callable[..., Office], producer: Producer) -> None:
    office()
    producer.send("tasks", {"lr": 5}, correlation_id="c1")
    assert "error" in producer.answer()[1]
    relaxed = Recipe.parse({**RECIPE, "schema": {"type": "object"}})
    driver.yard.recipes.put(driver.admin, "train", relaxed, default=True).result()
    producer.send("tasks", {"lr": 5}, correlation_id="c1")
    (run,) = finish(driver)
    assert producer.answer() == ("c1", driver_reply(run))


def driver_reply(run: int) -> dict[str, Any]:
    return {"id": run, "state": "succeeded", "reason": None, "detail": None, "exit_code": 0, "outputs": []}


def test_requests_wait_for_a_recipe_that_is_not_there_yet(
    driver: Driver, office: Callable[..., Office], producer: Producer, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("runyard.broker.intake.AGAIN_S", 0.1)
    office(Intake.parse_table("tasks", {"recipe": "later"}))
    producer.send("tasks", {"lr": 0.1})
    until(lambda: "requests of queue tasks wait: there is no recipe 'later'" in caplog.text, "the trouble told")
    driver.yard.recipes.put(driver.admin, "later", Recipe.parse(RECIPE), default=False).result()
    finish(driver)
    assert producer.answer()[1]["state"] == "succeeded"


def test_a_queue_with_other_flags_is_told_and_left_alone(
    driver: Driver, office: Callable[..., Office], producer: Producer
) -> None:
    desk = office(Intake.parse_table("tasks", {"durable": False}))
    error = until(lambda: desk.receptions[0].error, "a refusal")
    assert str(error) == "queue tasks exists with other flags: durable is true there and false here"


def test_a_field_mapping_names_where_parameters_are(
    driver: Driver, office: Callable[..., Office], producer: Producer
) -> None:
    office(Intake.parse_table("tasks", {"params": {"lr": "settings.Learning rate"}, "caller": "web"}))
    producer.send("tasks", {"settings": {"Learning rate": 0.25}, "token": "secret"})
    (run,) = finish(driver)
    assert (driver.yard.get_run(run)["params"], driver.yard.get_run(run)["owner"]) == ({"lr": 0.25}, "web")
    producer.answer()
    producer.send("tasks", {"settings": {}})
    assert producer.answer()[1] == {"error": "the body has no 'settings.Learning rate'"}


# --- replies that do not get through ------------------------------------------------------------------------------


def test_a_reply_waits_for_its_queue(driver: Driver, office: Callable[..., Office], producer: Producer) -> None:
    office()
    producer.send("tasks", {"lr": 0.1}, reply_to="later")
    finish(driver)
    waiting = until(lambda: [row for row in shown(driver) if row["tries"]], "a try in vain")[0]
    assert (waiting["state"], waiting["trouble"]) == ("due", "the broker has no queue later")
    producer.declare("later")
    driver.clock.now += 1.0
    assert producer.is_empty("later")
    for _ in range(4):
        driver.clock.now += 3600
    assert producer.answer("later")[1]["state"] == "succeeded"
    until(lambda: shown(driver)[0]["state"] == "replied", "it noted")


def test_a_reply_waits_for_the_broker(
    driver: Driver, office: Callable[..., Office], producer: Producer, lab: RabbitLab, vhost: str
) -> None:
    relay = lab.relay()
    desk = office(url=lab.url(vhost, port=relay.port))
    producer.send("tasks", {"lr": 0.1})
    until(lambda: run_ids(driver), "the request stored")
    relay.cut()
    until(lambda: not desk.connection.is_open, "the cut noticed")
    finish(driver)
    relay.mend()
    assert producer.answer()[1]["state"] == "succeeded"
    assert shown(driver)[0]["tries"] == 0


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_large_reply_has_the_time_that_it_takes(
    driver: Driver, office: Callable[..., Office], producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runyard.broker.replies.CONFIRM_S", 0.0)
    monkeypatch.setattr("runyard.broker.replies.SLOWEST", 10)
    office()
    producer.send("tasks", {"lr": 0.1})
    finish(driver, outputs={"a": b"x" * 9000})
    assert producer.answer()[1]["state"] == "succeeded"
    until(lambda: shown(driver)[0]["state"] == "replied", "it noted")
    assert shown(driver)[0]["tries"] == 0


def test_a_reply_is_sent_again_on_demand_and_forgotten_after_a_week(
    driver: Driver, office: Callable[..., Office], producer: Producer
) -> None:
    office()
    producer.send("tasks", {"lr": 0.1})
    finish(driver)
    first = producer.answer()
    until(lambda: shown(driver)[0]["state"] == "replied", "it noted")
    assert driver.yard.outbox.resend([shown(driver)[0]["id"]]).result() == [1]
    assert producer.answer() == first
    until(lambda: shown(driver)[0]["state"] == "replied", "it noted again")
    assert driver.yard.outbox.resend(queue="tasks").result() == [1]
    assert producer.answer() == first
    until(lambda: shown(driver)[0]["state"] == "replied", "it noted again")
    driver.clock.now += 7 * 86400 - 60
    driver.yard.outbox.tidy()
    assert len(shown(driver)) == 1
    driver.clock.now += 61
    driver.yard.outbox.tidy()
    assert shown(driver) == []


def test_what_does_not_fit_is_a_link(driver: Driver, office: Callable[..., Office], producer: Producer) -> None:
    recipe = Recipe.parse({**RECIPE, "reply": {"fields": ["id"], "values": {"loss": "m.json:loss"}, "inline": 100}})
    driver.yard.recipes.put(driver.admin, "train", recipe, default=True).result()
    office()
    producer.send("tasks", {"lr": 0.1})
    (run,) = finish(driver, outputs={"m.json": b'{"loss": 0.5}', "large": b"x" * 101})
    reply = producer.answer()[1]
    assert (reply["id"], reply["loss"]) == (run, 0.5)
    large, small = reply["outputs"]
    assert "content" in small and "url" not in small
    assert "content" not in large and large["url"].startswith("https://yard.example/api/v1/links/sha256:")


def test_the_broker_itself_says_how_large_a_message_may_be(
    driver: Driver, limited: RabbitLab, connect: Connect, office: Callable[..., Office]
) -> None:
    vhost = limited.add_vhost()
    with contextlib.closing(Producer(limited.url(vhost))) as producer:
        producer.declare("tasks")
        producer.declare("answers")
        office(url=limited.url(vhost))
        producer.send("tasks", {"lr": 0.1})
        finish(driver, outputs={"a": b"x" * 4000, "b": b"y" * 9000})
        first, second = producer.answer()[1]["outputs"]
        assert "content" in first and "url" in second


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_limit_that_was_raised_holds_for_what_is_sent_again(
    driver: Driver, limited: RabbitLab, office: Callable[..., Office]
) -> None:
    vhost, relay = limited.add_vhost(), limited.relay()
    with contextlib.closing(Producer(limited.url(vhost))) as producer:
        producer.declare("tasks")
        producer.declare("answers")
        desk = office(url=limited.url(vhost, port=relay.port))
        producer.send("tasks", {"lr": 0.1})
        finish(driver, outputs={"a": b"x" * 9000})
        assert "url" in producer.answer()[1]["outputs"][0]
        until(lambda: shown(driver)[0]["state"] == "replied", "it noted")
        with limited.other_message_size(100_000):
            relay.cut()
            until(lambda: not desk.connection.is_open, "the broker gone")
            relay.mend()
            driver.yard.outbox.resend(queue="tasks").result()
            assert "content" in producer.answer()[1]["outputs"][0]


def test_a_reply_that_never_fits_says_so(driver: Driver, office: Callable[..., Office], producer: Producer) -> None:
    office(Intake.parse_table("tasks", {"reply_limit": 150}))
    producer.send("tasks", {"_run_group_type": "grid", "lr": [0.1, 0.2]})
    finish(driver)
    reply = producer.answer()[1]
    assert reply["error"].startswith("the reply about runs 1 to 2 has ")
    assert "raise reply_limit of intake.tasks" in reply["error"]


# --- a yard that is killed ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("correlation_id", ["c1", None])
def test_a_yard_killed_between_commit_and_acknowledgement_starts_nothing_twice(
    driver: Driver, office: Callable[..., Office], producer: Producer, lab: RabbitLab, vhost: str, store_url: str,
    tmp_path: Path, correlation_id: str | None,
) -> None:  # fmt: skip
    producer.send("tasks", {"lr": 0.1}, correlation_id=correlation_id)
    words = [sys.executable, str(DOOMED), str(tmp_path / "home"), store_url, lab.url(vhost)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (run,) = run_ids(driver)
    office()
    assert finish(driver) == [run]
    assert producer.answer()[1]["id"] == run
    until(lambda: lab.queue(vhost, "tasks").get("messages", 1) == 0, "the request acknowledged", timeout_s=60)
    assert run_ids(driver) == [run]
