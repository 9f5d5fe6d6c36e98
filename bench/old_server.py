"""A web server of the Training Runs server's shape: Flask takes a run configuration, Celery puts it into RabbitMQ.

It runs in the environment that `make bench-deps` makes:

    python old_server.py waitress PORT             as that server ran
    python old_server.py flask PORT                Flask's own, as with its --develop
    gunicorn old_server:app
    celery --app old_server:tasks worker           what takes the tasks

BROKER is the broker's address. With CONFIRMED=1 an answer is given when the broker has confirmed the task, which for a
persistent message in a durable queue means on disk. Otherwise, as Celery does unless it is told, it was written to a
socket, and may be lost with the broker.
"""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime
from typing import Any

from celery import Celery
from flask import Flask, request

tasks = Celery("tasks", broker=os.environ["BROKER"])
tasks.conf.broker_transport_options = {"confirm_publish": os.environ.get("CONFIRMED") == "1"}
app = Flask("server")


@tasks.task(name="tasks.run_request_task")  # type: ignore[untyped-decorator]
def run_request_task(run_request: dict[str, Any]) -> None:
    subprocess.run(run_request["command"], check=True)


@app.post("/request")
def receive() -> dict[str, Any]:
    run_request = request.get_json()
    run_request_task.delay(run_request)
    return {"processed_request": datetime.now(), "run_request": run_request}


def main(server: str, port: str) -> None:
    if server == "flask":
        app.run(port=int(port))
        return
    import waitress

    waitress.serve(app, host="127.0.0.1", port=int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
