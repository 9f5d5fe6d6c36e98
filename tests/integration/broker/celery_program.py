"""A program as those that used the Training Runs server's broker: `celery_program.py URL BACKEND CONFIGURATION`.

Prints what came of it as JSON; `BACKEND` is `rpc://`, or `none` for a program that never asks.
"""

from __future__ import annotations

import json
import sys

from celery import Celery

url, backend, configuration = sys.argv[1:]
app = Celery("tasks", broker=url.replace("amqp://", "pyamqp://", 1), backend=None if backend == "none" else backend)


@app.task(name="tasks.run_request_task")
def run_request_task(configuration: object) -> None:
    """Its body was the worker's."""


sent = run_request_task.delay(json.loads(configuration))
if backend == "none":
    print(json.dumps({"id": sent.id}))
else:
    try:
        print(json.dumps({"id": sent.id, "result": sent.get(timeout=60)}))
    except Exception as error:
        print(json.dumps({"id": sent.id, "error": str(error), "type": type(error).__name__}))
