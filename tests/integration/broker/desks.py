"""A yard's desks for other programs, at work, and an agent that ends what they started."""

from __future__ import annotations

import dataclasses
import hashlib
import threading
from typing import Any

from runyard.bridges import formats
from runyard.broker.amqp import Connection
from runyard.broker.intake import Reception
from runyard.broker.replies import Replies
from runyard.model.intake import Intake
from runyard.store import runs
from tests.integration.yard.conftest import NOTHING, Driver, ended
from tests.labs.waiting import until

RECIPE = {
    "command": ["train", "{lr}"],
    "schema": {"type": "object", "required": ["lr"], "properties": {"lr": {"type": "number", "maximum": 1}}},
}
BODY_LIMIT = 100_000


class Office:
    """A yard's desks for other programs, ticking in a thread; `stop` is what a crash is not."""

    def __init__(self, driver: Driver, connection: Connection, *intakes: Intake) -> None:
        self.yard, self.connection = driver.yard, connection
        spoken = {one.name: (one, formats.load(one.format, "format")) for one in intakes}
        self.receptions = [
            Reception(connection, one, spoken[one.name][1], driver.yard.requests, BODY_LIMIT) for one in intakes
        ]
        self.replies = Replies(connection, spoken, driver.yard.outbox)
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=part, args=(self._stop,)) for part in (*self.receptions, self.replies)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


TASKS = Intake.parse_table("tasks", {})


def run_ids(driver: Driver) -> list[int]:
    with driver.yard.store.read() as connection:
        return sorted(row.id for row in runs.list_page(connection, limit=1000))


def finish(driver: Driver, *, outputs: dict[str, bytes] | None = None, exit_code: int = 0) -> list[int]:
    """Run everything that waits, with these files left."""
    claims = until(lambda: driver.sync().claims, "runs to claim")
    files = []
    for path, data in (outputs or {}).items():
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        driver.yard.blobs.put(digest, [data])
        files.append({"path": path, "size": len(data), "digest": digest, "mode": 0o644})
    reports = [dataclasses.replace(ended(claim, exit_code=exit_code), outputs=files) for claim in claims]
    driver.sync(*reports, free=NOTHING)
    return [claim.key.run for claim in claims]


def shown(driver: Driver) -> list[dict[str, Any]]:
    return driver.yard.outbox.every()
