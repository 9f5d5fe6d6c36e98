"""A program with the real Celery library asks, and gets its result as from a worker."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runyard.model.intake import Intake
from tests.integration.broker.desks import Office, finish, run_ids, shown
from tests.integration.broker.producers import Producer
from tests.integration.yard.conftest import Driver
from tests.labs.rabbitmq import RabbitLab
from tests.labs.waiting import until

PROGRAM = Path(__file__).parent / "celery_program.py"
CELERY = Intake.parse_table("celery", {})
CALL = {"task": "tasks.run_request_task", "id": "x"}


class Program:
    def __init__(self, url: str, backend: str, configuration: dict[str, Any]) -> None:
        words = [sys.executable, str(PROGRAM), url, backend, json.dumps(configuration)]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def result(self) -> dict[str, Any]:
        out, err = self._process.communicate(timeout=120)
        assert self._process.returncode == 0, err
        return dict(json.loads(out.splitlines()[-1]))


def test_a_task_is_answered_as_a_worker_would(
    driver: Driver, office: Callable[..., Office], lab: RabbitLab, vhost: str
) -> None:
    office(CELERY)
    program = Program(lab.url(vhost), "rpc://", {"lr": 0.1})
    until(lambda: run_ids(driver), "the run", timeout_s=60)
    (run,) = finish(driver)
    assert program.result()["result"]["id"] == run


def test_a_task_that_failed_raises_at_its_caller(
    driver: Driver, office: Callable[..., Office], lab: RabbitLab, vhost: str
) -> None:
    office(CELERY)
    refused = Program(lab.url(vhost), "rpc://", {"lr": 5}).result()
    assert (refused["type"], refused["error"]) == ("RunFailed", "params.lr: 5 is more than the maximum 1")
    program = Program(lab.url(vhost), "rpc://", {"lr": 0.1})
    until(lambda: run_ids(driver), "the run", timeout_s=60)
    (run,) = finish(driver, exit_code=1)
    assert program.result()["error"].startswith(f"run {run} failed: error")


def test_a_program_that_never_asks_leaves_no_reply_behind(
    driver: Driver, office: Callable[..., Office], lab: RabbitLab, vhost: str
) -> None:
    office(CELERY)
    sent = Program(lab.url(vhost), "none", {"_run_group_type": "grid", "lr": [0.1, 0.2]}).result()
    until(lambda: len(run_ids(driver)) == 2, "the runs")
    finish(driver)
    replied = until(lambda: [row for row in shown(driver) if row["state"] == "replied"], "it given up")[0]
    assert (replied["correlation_id"], replied["tries"]) == (sent["id"], 0)
    assert replied["trouble"].startswith("no consumer waits: the broker has no queue ")


@pytest.mark.parametrize(
    ("headers", "content_type", "body", "sentence"),
    [
        ({}, "application/json", [[{"lr": 0.1}], {}, {}], "this is no message of Celery's protocol 2"),
        ({"task": "tasks.other", "id": "x"}, "application/json", [[{}], {}, {}], "the task 'tasks.other' is not known"),
        (CALL, "application/x-python-serialize", [], "the body is application/x"),
        (CALL, "application/json", [[1], {}, {}], "tasks.run_request_task has one"),
        (CALL, "application/json", {"lr": 1}, "tasks.run_request_task has one"),
        (CALL, "application/json", [[{"lr": 0.1}], {"lr": 0.2}, {}], "tasks.run_request_task has one"),
    ],
)  # fmt: skip
def test_what_is_no_such_task_is_put_aside(
    driver: Driver, office: Callable[..., Office], producer: Producer,
    headers: dict[str, str], content_type: str, body: Any, sentence: str,
) -> None:  # fmt: skip
    office(CELERY)
    producer.declare("celery")
    producer.send("celery", body, headers=headers, content_type=content_type, reply_to=None)
    properties, _ = producer.receive("celery.dead")
    assert properties.headers["x-runyard-reason"].startswith(sentence)
    assert run_ids(driver) == []
