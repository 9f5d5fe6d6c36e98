"""What the addresses of the Training Runs server answer: its fields, and those that are new."""

from __future__ import annotations

from runyard.model.json_schema import (
    ANYTHING,
    BOOLEAN,
    NUMBER,
    TEXTS,
    Schema,
    described,
    integer,
    listed,
    or_null,
    record,
    text,
)
from runyard.server.schemas.common import RUN_ID

STARTED = record(
    {
        "processed_request": text("When, as in an HTTP header"),
        "run_request": described(ANYTHING, "The configuration as it came"),
        "id": described(RUN_ID, "Of one configuration: its run"),
        "ids": described(listed(RUN_ID), "Of a grid: its runs"),
        "url": text("Where they are shown, to their sender too"),
    },
    required=["processed_request", "run_request", "url"],
)

_TASK = record(
    {
        "id": text("The run's number"),
        "name": text("Its recipe"),
        "args": described(listed(ANYTHING), "Its configuration, where you may see it"),
        "kwargs": ANYTHING,
        "type": text("As name"),
        "hostname": or_null(text("The worker that has it")),
        "time_start": or_null(NUMBER),
        "acknowledged": BOOLEAN,
        "delivery_info": record(
            {
                "exchange": text(),
                "routing_key": text("Its site"),
                "priority": {"type": "integer"},
                "redelivered": described(BOOLEAN, "True: it is not its first attempt"),
            }
        ),
        "worker_pid": {"type": "null"},
    }
)


def _by_worker(items: Schema, description: str) -> Schema:
    return or_null(described({"type": "object", "additionalProperties": items}, description))


STATUS = record(
    {
        "queued_tasks": _by_worker(listed(_TASK), "What waits, by the site that it waits for"),
        "registered_workers": _by_worker(TEXTS, "The recipes that each agent would run"),
        "active_tasks": _by_worker(listed(_TASK), "What each agent has in its hands"),
        "scheduled_tasks": _by_worker(listed(_TASK), "What waits for other runs"),
        "counts": record({name: integer() for name in ("queued", "starting", "running")}),
    },
    description="As Celery's inspection gave it, null where no worker answers. Long lists are cut, `counts` are not.",
)
