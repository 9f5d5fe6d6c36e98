"""A site that cannot be reached for a while: nothing is concluded from that, and nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from runyard.agent.agent import Agent
from runyard.agent.errands import InlineErrands
from runyard.backends.base import Job, Presence, Sighting
from runyard.backends.local import LocalBackend
from runyard.hosts.base import KnownFiles, Listing, OutputSearch, Seen, Unreachable
from runyard.hosts.local import LocalHost
from runyard.model.resources import Capacity
from runyard.model.wire import AttemptKey
from runyard.testing.backend_contract import until
from tests.integration.agent.fake_yard import FakeYard


class DistantHost(LocalHost):
    """This machine, at the end of a cable that somebody may pull."""

    away = False
    cut_at = ""  # the verb at which it is pulled next

    def scan(self, root: str, known: Iterable[KnownFiles]) -> list[Seen]:
        self._reach()
        return super().scan(root, known)

    def put(self, root: str, files: Mapping[str, bytes], directories: Iterable[str] = ()) -> None:
        self._reach()
        super().put(root, files, directories)

    def filled(self, directories: Sequence[str]) -> set[str]:
        self._reach("filled")
        return super().filled(directories)

    def fetch_many(self, paths: Sequence[str]) -> dict[str, bytes]:
        self._reach()
        return super().fetch_many(paths)

    def find(self, searches: Sequence[OutputSearch]) -> list[Listing]:
        self._reach("find")
        return super().find(searches)

    def _reach(self, verb: str = "") -> None:
        self.away = self.away or (verb != "" and verb == self.cut_at)
        if self.away:
            raise Unreachable("somebody pulled the cable")


class DistantBackend(LocalBackend):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.host: DistantHost = DistantHost()

    def poll(self, jobs: Sequence[Job]) -> dict[AttemptKey, Sighting]:
        if self.host.away:
            return {job.key: Sighting(presence=Presence.UNKNOWN) for job in jobs}
        return super().poll(jobs)

    def notices(self) -> set[str]:
        return set() if self.host.away else super().notices()


class Bench:
    def __init__(self, site: Path) -> None:
        self.site, self.yard, self.passed = site, FakeYard(), 0.0
        self.agents: list[Agent] = []
        self.restart()

    def restart(self) -> None:
        self.backend = DistantBackend(self.site)
        self.agents.append(
            Agent(
                self.yard, self.backend, self.site, "far", Capacity(cpus=2, memory=1 << 40), errands=InlineErrands(),
                clock=lambda: time.monotonic() + self.passed,
            )
        )  # fmt: skip

    def tick(self, *, later: float = 0.0) -> None:
        self.passed += later
        self.agents[-1].wake()
        self.agents[-1].tick()

    def until(self, condition: Callable[[], object], what: str) -> None:
        def go() -> object:
            self.tick(later=0.1)
            return condition()

        until(go, what)


@pytest.fixture
def bench(site: Path) -> Iterator[Bench]:
    made = Bench(site)
    yield made
    for agent in made.agents:
        agent.close()


def test_a_run_that_cannot_be_seen_is_not_silent(bench: Bench) -> None:
    key = bench.yard.submit(["sh", "-c", "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo over"])
    bench.until(lambda: bench.yard.log(key) == "begun\n", "it runs")
    bench.backend.host.away = True
    for _ in range(20):
        bench.tick(later=60.0)
    assert bench.yard.ended == {}
    bench.backend.host.away = False
    Path(bench.site, "runs/1/a1/work/go").touch()
    bench.until(lambda: key in bench.yard.ended, "the end")
    assert bench.yard.log(key) == "begun\nover\n"


def test_a_run_waits_to_be_staged(bench: Bench) -> None:
    bench.backend.host.away = True
    key = bench.yard.submit(["true"])
    for _ in range(5):
        bench.tick(later=10.0)
    assert key in bench.yard.owned
    bench.backend.host.away = False
    bench.until(lambda: key in bench.yard.ended, "the end")
    assert bench.yard.reports[-1].record and bench.yard.reports[-1].record["exit_code"] == 0


@pytest.mark.parametrize("verb", ["filled", "find"])
def test_outputs_wait_to_be_brought_back(bench: Bench, verb: str) -> None:
    key = bench.yard.submit(["sh", "-c", "echo result > $OUTPUT_DIR/r"])
    bench.backend.host.cut_at = verb
    bench.until(lambda: bench.backend.host.away, "the cut")
    for _ in range(5):
        bench.tick(later=10.0)
    assert bench.yard.ended == {}
    bench.backend.host.away, bench.backend.host.cut_at = False, ""
    bench.until(lambda: key in bench.yard.ended, "the end")
    assert list(bench.yard.blobs.values()) == [b"result\n"]


def test_an_agent_that_starts_meanwhile_says_nothing_of_the_runs_it_had(bench: Bench) -> None:
    key = bench.yard.submit(["sh", "-c", "echo begun; while [ ! -e go ]; do sleep 0.05; done"])
    bench.until(lambda: bench.yard.log(key) == "begun\n", "it runs")
    bench.restart()
    bench.backend.host.away = True
    before = len(bench.yard.reports)
    for _ in range(5):
        bench.tick(later=10.0)
    assert len(bench.yard.reports) == before
    bench.backend.host.away = False
    Path(bench.site, "runs/1/a1/work/go").touch()
    bench.until(lambda: key in bench.yard.ended, "the end")
    assert not Path(bench.site, "runs/1/a1/duplicates").exists()
