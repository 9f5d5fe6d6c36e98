"""Jobs whose directories this machine does not see."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from typing import Any

from runyard.backends.base import Batch, Job, Presence, Sighting
from runyard.backends.ssh import SshBackend
from runyard.model.resources import Resources
from runyard.model.wire import AttemptKey

PATIENCE_S = 90.0


class FarJobs:
    def __init__(self, backend: SshBackend, directory: str) -> None:
        self.backend, self.directory = backend, directory
        self._made = 0

    def make(self, argv: list[str], **spec: Any) -> Job:
        self._made += 1
        place = f"{self.directory}/runs/{self._made}/a1"
        job = Job(
            key=AttemptKey(run=self._made, attempt=1), directory=place, tag=secrets.token_hex(8), batch="far", index=1
        )
        frozen = {
            "key": str(job.key), "tag": job.tag, "argv": argv, "cwd": place, "env": {}, "inherit_env": True,
            "time_limit": None, "memory_limit": None, "split_output": False, "stop": {"signal": "TERM", "grace": 10},
            "cpus": 1, "gpus": [], **spec,
        }  # fmt: skip
        self.backend.host.put(place, {"spec.json": json.dumps(frozen).encode()}, ["outputs"])
        return job

    def submit(self, *jobs: Job) -> None:
        assert self.backend.submit(Batch(name="far", resources=Resources(), jobs=jobs)) == []

    def read(self, job: Job, name: str) -> str:
        return self.backend.host.fetch(f"{job.directory}/{name}").decode()

    def record(self, job: Job) -> dict[str, Any] | None:
        found = self.backend.host.fetch_many([f"{job.directory}/status.json"])
        status = json.loads(next(iter(found.values()), b"{}"))
        return status if status.get("state") == "ended" else None

    def runner(self, job: Job) -> int:
        """Its process number over there."""
        self.until(job, Presence.ALIVE)
        return int(json.loads(self.read(job, "started/runner.json"))["pid"])

    def until(self, job: Job, presence: Presence) -> Sighting:
        return until(lambda: self._seen(job, presence), f"{presence}")

    def _seen(self, job: Job, presence: Presence) -> Sighting | None:
        seen = self.backend.poll([job])[job.key]
        return seen if seen.presence is presence else None


def until(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S:g} seconds"
        time.sleep(0.05)
    return answer
