"""A queue that takes its time: nothing is handed over twice, and nobody else waits for it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from runyard.agent.agent import Agent
from runyard.agent.errands import Errands, InlineErrands
from runyard.backends.base import Backend, Batch, Job, Presence, Queueing, Refusal, Sighting, StopRequest
from runyard.hosts.base import Host
from runyard.hosts.local import LocalHost
from runyard.model.resources import Capacity
from runyard.model.wire import AttemptKey
from tests.integration.agent.fake_yard import FakeYard

PATIENCE_S = 90.0


class SlowQueue(Backend, Queueing):
    """Knows of no job; `submit` waits at a gate."""

    def __init__(self) -> None:
        self.host = LocalHost()
        self.gate = threading.Event()
        self.submitted: list[AttemptKey] = []
        self.refusal = ""
        self.polls = 0
        self.places = 100

    @classmethod
    def build(cls, directory: Path, options: Mapping[str, Any], host: Host | None = None) -> Backend:
        return cls()

    def submit(self, batch: Batch) -> list[Refusal]:
        self.submitted += [job.key for job in batch.jobs]
        self.gate.wait(PATIENCE_S)
        return [Refusal(key=job.key, text=self.refusal, final=True) for job in batch.jobs if self.refusal]

    def poll(self, jobs: Sequence[Job]) -> dict[AttemptKey, Sighting]:
        self.polls += 1
        return {job.key: Sighting(presence=Presence.ABSENT) for job in jobs}

    def cancel(self, stops: Sequence[StopRequest]) -> None:
        pass

    def explain(self, job: Job) -> str:
        return ""

    def room(self) -> int:
        return self.places

    def clear(self, like: str, owner: str, kept: Collection[str]) -> bool:
        return True


class LateQueue(SlowQueue):
    """Its jobs run and end while it is asked of them: after their directories were looked into."""

    def __init__(self) -> None:
        super().__init__()
        self.gate.set()

    def poll(self, jobs: Sequence[Job]) -> dict[AttemptKey, Sighting]:
        for job in jobs:
            directory = Path(job.directory)
            (directory / "started").mkdir(exist_ok=True)
            (directory / "log").write_text("late\n")
            record = {"ending": "exit", "exit_code": 0, "signal": None, "tree_gone": True, "sizes": {"log": 5}}
            (directory / "status.json").write_text(json.dumps({"state": "ended", "beat": 1, **record}))
        return {job.key: Sighting(presence=Presence.GONE, text="COMPLETED") for job in jobs}


class Bench:
    def __init__(
        self, directory: Path, queue: SlowQueue, errands: Errands | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.yard, self.queue, self.passed = FakeYard(), queue, 0.0
        self.agent = Agent(
            self.yard, self.queue, directory, "far", Capacity(elastic=True), errands=errands,
            clock=lambda: now() + self.passed,
        )  # fmt: skip

    def until(self, condition: Callable[[], object], what: str, *, later: float = 0.0) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, what
            self.passed += later
            self.agent.wake()
            self.agent.tick()
            time.sleep(0.01)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path, SlowQueue())
    yield made
    made.queue.gate.set()
    made.agent.close()


def test_what_is_being_handed_over_is_not_handed_over_again(bench: Bench) -> None:
    key = bench.yard.submit(["true"])
    bench.until(lambda: bench.queue.submitted, "the submit")
    syncs = len(bench.yard.requests)
    bench.until(lambda: len(bench.yard.requests) >= syncs + 10, "syncs go on", later=20.0)
    assert bench.yard.requests[-1].room == 99, "it is as good as there"
    bench.queue.gate.set()
    bench.until(lambda: len(bench.queue.submitted) == 2, "it is absent: once more", later=1.0)
    assert bench.queue.submitted == [key, key]


def test_a_refusal_that_comes_late_is_told(bench: Bench) -> None:
    bench.queue.refusal = "no such partition"
    key = bench.yard.submit(["true"])
    bench.until(lambda: bench.queue.submitted, "the submit")
    bench.queue.gate.set()
    bench.until(lambda: key in bench.yard.ended, "the end")
    assert (bench.yard.ended[key].record or {})["message"] == "no such partition"


def test_a_queue_without_room_is_asked_until_it_has_some(bench: Bench) -> None:
    bench.until(lambda: bench.yard.requests, "the first sync")
    assert bench.queue.polls == 0, "there is room, and nobody to ask about"
    bench.queue.places = 0
    bench.until(lambda: bench.queue.polls > 1, "polls", later=1.0)


def test_what_a_run_left_is_read_after_its_queue_says_that_it_is_gone(tmp_path: Path) -> None:
    """Also when the queue's answer comes in the middle of a tick: nothing that was seen before it counts as all."""
    bench = Bench(tmp_path, LateQueue(), InlineErrands())
    keys = [bench.yard.submit(["true"]) for _ in range(3)]
    bench.until(lambda: all(key in bench.yard.ended for key in keys), "their ends", later=1.0)
    bench.agent.close()
    assert [(bench.yard.ended[key].record or {}).get("ending") for key in keys] == ["exit"] * 3
    assert [bench.yard.log(key) for key in keys] == ["late\n"] * 3


def test_a_full_queue_is_polled_at_its_pace(tmp_path: Path) -> None:
    """An answer wakes the agent, which must not ask again because of it."""
    queue = SlowQueue()
    queue.places = 0
    bench = Bench(tmp_path, queue, InlineErrands(), now=lambda: 1000.0)
    for _ in range(20):
        bench.agent.tick()
    assert queue.polls <= 2, "one on request, one because it is full"
    before = queue.polls
    bench.passed += 60.0
    bench.agent.tick()
    assert queue.polls == before + 1
    bench.agent.close()
