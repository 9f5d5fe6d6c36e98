"""Messages of programs that spoke to the Training Runs server's broker: plain JSON, and Celery's protocol 2."""

from __future__ import annotations

import json
from typing import Any

from runyard import errors
from runyard.bridges.training_runs import grid
from runyard.model import json_text, reply_document
from runyard.model.request import Format, Incoming, Outcome, Params, Sender

TASK = "tasks.run_request_task"
JSON_TYPES = ("application/json", "application/x-json")


class TrainingRunFormat:
    """The body is the run configuration, or a grid of them."""

    def identify(self, message: Incoming) -> Sender:
        return Sender.of(message)

    def read(self, message: Incoming, largest: int) -> tuple[list[Params], bool]:
        return _configurations(json_text.parse_object(message.body), largest)

    def write(self, outcome: Outcome, room: int) -> bytes:
        return reply_document.to_bytes(reply_document.compose(outcome, room))


class Celery:
    """A call of `tasks.run_request_task` with one argument, the run configuration; answered as its result.

    https://docs.celeryq.dev/en/stable/internals/protocol.html#version-2
    """

    def identify(self, message: Incoming) -> Sender:
        return Sender.of(message, correlation_id=message.headers.get("id"))

    def read(self, message: Incoming, largest: int) -> tuple[list[Params], bool]:
        _check_task(message)
        return _configurations(_argument(json_text.parse(message.body)), largest)

    def write(self, outcome: Outcome, room: int) -> bytes:
        bare = len(_result(outcome, None))
        return _result(outcome, reply_document.compose(outcome, room - bare))


def _configurations(body: Params, largest: int) -> tuple[list[Params], bool]:
    return grid.configurations(body, largest), grid.GROUP in body


def _check_task(message: Incoming) -> None:
    """Nothing from another program is unpickled."""
    if "task" not in message.headers:
        raise errors.InvalidInput("this is no message of Celery's protocol 2: its headers name no task")
    if message.headers["task"] != TASK:
        raise errors.InvalidInput(f"the task {message.headers['task']!r} is not known here", f"call {TASK}")
    if message.content_type not in JSON_TYPES:
        raise errors.InvalidInput(
            f"the body is {message.content_type or 'of no known type'}, not JSON", "use Celery's serializer json"
        )


def _argument(body: Any) -> Params:
    """Of `[args, kwargs, embed]`."""
    match body:
        case [[dict() as configuration], dict() as by_name, *_] if not by_name:
            return configuration
    raise errors.InvalidInput(f"{TASK} has one argument, a run configuration", "send [[{…}], {}, {…}]")


def _result(outcome: Outcome, document: Any) -> bytes:
    """As Celery's rpc result backend reads it. A task that failed raises at the caller with the sentence."""
    error = outcome.error or next((run.error for run in outcome.runs if run.error and not outcome.is_group), "")
    if document is not None and "error" in document and not error:
        error = document["error"]  # the reply itself was too large
    failure = {"exc_type": "RunFailed", "exc_message": [error], "exc_module": None}
    result: dict[str, Any] = {
        "task_id": outcome.correlation_id,
        "status": "FAILURE" if error else "SUCCESS",
        "result": failure if error else document,
        "traceback": None,
        "children": [],
    }
    return json.dumps(result).encode()


_FORMATS: tuple[Format, ...] = (TrainingRunFormat(), Celery())  # for the type checker
