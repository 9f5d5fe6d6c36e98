"""A scheduler that says nothing for a while keeps nobody waiting but those who need its answer."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from runyard.agent.agent import Agent
from runyard.hosts.base import Result
from runyard.model.resources import Capacity
from runyard.model.site import SiteSpec
from runyard.model.wire import AttemptKey
from tests.integration.agent.fake_yard import FakeYard
from tests.integration.batch.site import Site, UserHost, until
from tests.labs.cluster import Cluster
from tests.labs.slurm import SlurmLab

TALKER = "while :; do echo talking; sleep 0.2; done"


class Listening(UserHost):
    """Knows what runs."""

    def __init__(self, lab: Cluster) -> None:
        super().__init__(lab)
        self.running: list[Sequence[str]] = []

    def run(self, argv: Sequence[str], *, timeout: float, input: bytes = b"") -> Result:
        self.running.append(argv)
        try:
            return super().run(argv, timeout=timeout, input=input)
        finally:
            self.running.remove(argv)

    def question(self) -> Sequence[str] | None:
        """What the scheduler is asked at this moment."""
        return next((argv for argv in self.running if "squeue" in argv), None)


class Post:
    """An agent of a cluster at its work, in a thread as ever, with a yard in memory."""

    def __init__(self, site: Site, directory: Path) -> None:
        self.yard, self.host = FakeYard(), Listening(site.lab)
        site.host = self.host
        backend = site.backend(command_timeout="300")
        self.agent = Agent(
            self.yard, backend, directory, "post", Capacity(elastic=True), described=SiteSpec(kind=site.kind),
            root=f"{site.directory}/runs",
        )  # fmt: skip
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self.agent.run_forever, args=(self._stop,))
        self._thread.start()

    def submit(self, script: str) -> AttemptKey:
        key = self.yard.submit(["sh", "-c", script], batch=f"post-{secrets.token_hex(4)}")
        self.agent.wake()
        return key

    def cancel(self, key: AttemptKey) -> None:
        self.yard.cancel(key)
        self.agent.wake()

    def log_grows(self, key: AttemptKey) -> Callable[[], bool]:
        before = len(self.yard.log(key))
        return lambda: len(self.yard.log(key)) > before

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self.agent.close()


@pytest.fixture
def lab(slurm_lab: Callable[..., SlurmLab]) -> SlurmLab:
    return slurm_lab()


@pytest.fixture
def post(lab: SlurmLab, tmp_path: Path) -> Iterator[Post]:
    made = Post(Site(lab, "slurm"), tmp_path)
    yield made
    lab.resume_controller()
    made.close()


def test_logs_arrive_and_the_lease_is_renewed_while_slurm_says_nothing(lab: SlurmLab, post: Post) -> None:
    key = post.submit(TALKER)
    until(lambda: "talking" in post.yard.log(key), "it runs")
    lab.hang_controller()
    until(post.host.question, "a question that nobody answers")
    asked, syncs = post.host.question(), len(post.yard.requests)
    until(post.log_grows(key), "more of its log")
    until(lambda: len(post.yard.requests) > syncs, "the next renewal")
    assert post.host.question() is asked, "all of it while the question was open"


def test_a_run_is_stopped_while_slurm_says_nothing(lab: SlurmLab, post: Post) -> None:
    key, other = post.submit(TALKER), post.submit(TALKER)
    until(lambda: "talking" in post.yard.log(key) and "talking" in post.yard.log(other), "both run")
    lab.hang_controller()
    until(post.host.question, "a question that nobody answers")
    asked = post.host.question()
    post.cancel(key)
    until(lambda: key in post.yard.ended, "its end")
    until(post.log_grows(other), "more of the other's log")
    assert post.host.question() is asked, "all of it while the question was open"
    assert (post.yard.ended[key].record or {})["stop_reason"] == "user"
