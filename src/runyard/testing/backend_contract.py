"""What every backend must do, as tests. A plug-in's author subclasses `BackendContract` and gives it a backend:

    class TestMine(BackendContract):
        @pytest.fixture
        def make_backend(self, directory):
            return lambda: MyBackend(directory)

Jobs are real commands in real run directories, so the backend must be able to execute on this machine.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from runyard.backends.base import Backend, Batch, Job, Presence, Sighting, StopRequest
from runyard.model.resources import Resources
from runyard.model.wire import AttemptKey

PATIENCE_S = 90.0
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if len(sys.argv) < 3:
    subprocess.Popen([sys.executable, *sys.argv, "grandchild"], start_new_session=True)
open(sys.argv[1], "a").write("%d\\n" % os.getpid())
time.sleep(600)
"""


class JobFactory:
    """Makes jobs below a directory, complete with their spec.json."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._batch = f"contract-{secrets.token_hex(4)}"  # a name is used once: a scheduler remembers those it had
        self._made = 0

    def make(self, argv: list[str], **spec: Any) -> Job:
        self._made += 1
        directory = self.root / "runs" / str(self._made) / "a1"
        (directory / "outputs").mkdir(parents=True)
        job = Job(
            key=AttemptKey(run=self._made, attempt=1), directory=str(directory), tag=secrets.token_hex(8),
            batch=self._batch, index=self._made,
        )  # fmt: skip
        frozen = {
            "key": str(job.key), "tag": job.tag, "argv": argv, "cwd": str(directory),
            "env": {"PATH": os.environ["PATH"]}, "time_limit": None, "memory_limit": None, "split_output": False,
            "stop": {"signal": "TERM", "grace": 10}, "cpus": 1, "gpus": [], **spec,
        }  # fmt: skip
        (directory / "spec.json").write_text(json.dumps(frozen))
        return job


def batch(*jobs: Job) -> Batch:
    return Batch(name=jobs[0].batch, resources=Resources(), jobs=jobs)


def record_of(job: Job) -> dict[str, Any] | None:
    """The exit record, once there is one."""
    try:
        status = json.loads(Path(job.directory, "status.json").read_text())
    except (OSError, ValueError):
        return None
    return status if status["state"] == "ended" else None


def sight(backend: Backend, job: Job) -> Sighting:
    return backend.poll([job])[job.key]


def until(condition: Callable[[], object], what: str, patience: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {patience:g} seconds")
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


class BackendContract:
    hands_over_again: ClassVar[bool] = True  # False: what is submitted twice is found out before it is handed over

    def is_alive(self, pid: int) -> bool:
        """Whether a process of a job lives; for backends whose jobs do not see this machine's process numbers."""
        return is_alive(pid)

    @pytest.fixture
    def directory(self, tmp_path: Path) -> Path:
        """The site's directory."""
        return tmp_path

    @pytest.fixture
    def make_backend(self, directory: Path) -> Callable[[], Backend]:
        raise NotImplementedError("a contract is for a backend: override this fixture")

    @pytest.fixture
    def backend(self, make_backend: Callable[[], Backend]) -> Iterator[Backend]:
        made = make_backend()
        yield made
        made.close()

    @pytest.fixture
    def jobs(self, directory: Path) -> JobFactory:
        return JobFactory(directory)

    def test_a_job_that_was_never_submitted_is_absent(self, backend: Backend, jobs: JobFactory) -> None:
        assert sight(backend, jobs.make(["true"])).presence is Presence.ABSENT

    def test_a_job_runs_and_leaves_its_record(self, backend: Backend, jobs: JobFactory) -> None:
        job = jobs.make(["sh", "-c", "echo hello; exit 3"])
        assert backend.submit(batch(job)) == []
        until(lambda: record_of(job), "the exit record")
        record = record_of(job)
        assert record is not None
        assert (record["ending"], record["exit_code"], record["tree_gone"]) == ("exit", 3, True)
        assert Path(job.directory, "log").read_text() == "hello\n"
        until(lambda: sight(backend, job).presence is Presence.GONE, "gone")

    def test_a_whole_batch_runs(self, backend: Backend, jobs: JobFactory) -> None:
        made = [jobs.make(["sh", "-c", f"exit {number}"]) for number in range(8)]
        assert backend.submit(batch(*made)) == []
        until(lambda: all(record_of(job) for job in made), "all exit records")
        assert [(record_of(job) or {})["exit_code"] for job in made] == list(range(8))

    def test_submitting_twice_executes_once(self, backend: Backend, jobs: JobFactory) -> None:
        job = jobs.make(["sh", "-c", "echo once >> times; sleep 0.5"])
        backend.submit(batch(job))
        backend.submit(batch(job))
        until(lambda: record_of(job), "the exit record")
        backend.submit(batch(job))
        if self.hands_over_again:
            until(lambda: Path(job.directory, "duplicates").exists(), "a runner that went away")
        assert Path(job.directory, "times").read_text() == "once\n"

    def test_a_running_job_is_alive(self, backend: Backend, jobs: JobFactory) -> None:
        job = jobs.make(["sleep", "600"])
        backend.submit(batch(job))
        until(lambda: sight(backend, job).presence is Presence.ALIVE, "alive")
        assert backend.explain(job)
        backend.cancel([StopRequest(job=job, reason="user", grace=5)])
        until(lambda: record_of(job), "the exit record")

    def test_one_poll_tells_about_all(self, backend: Backend, jobs: JobFactory) -> None:
        running, waiting = jobs.make(["sleep", "600"]), jobs.make(["true"])
        backend.submit(batch(running))
        until(lambda: sight(backend, running).presence is Presence.ALIVE, "alive")
        found = backend.poll([running, waiting])
        assert {key: sighting.presence for key, sighting in found.items()} == {
            running.key: Presence.ALIVE,
            waiting.key: Presence.ABSENT,
        }
        backend.cancel([StopRequest(job=running, reason="user", grace=5)])
        until(lambda: record_of(running), "the exit record")

    def test_a_job_that_is_stopped_before_it_begins_never_begins(self, backend: Backend, jobs: JobFactory) -> None:
        job = jobs.make(["sh", "-c", "echo began > began"])
        backend.cancel([StopRequest(job=job, reason="user", grace=5)])
        backend.submit(batch(job))
        until(lambda: Path(job.directory, "duplicates").exists(), "a runner that went away")
        record = record_of(job)
        assert record is not None
        assert (record["ending"], record["stop_reason"], record["exit_code"]) == ("stopped", "user", None)
        assert not Path(job.directory, "began").exists()
        until(lambda: sight(backend, job).presence is Presence.GONE, "gone")

    def test_a_tree_that_ignores_the_signal_and_left_its_session_is_ended(
        self, backend: Backend, jobs: JobFactory, tmp_path: Path
    ) -> None:
        program, pids = tmp_path / "stubborn.py", tmp_path / "pids"
        program.write_text(STUBBORN)
        job = jobs.make(["python3", str(program), str(pids)])
        backend.submit(batch(job))
        until(lambda: pids.exists() and len(pids.read_text().split()) == 2, "both processes")
        for waited in (0.0, 0.1):
            backend.cancel([StopRequest(job=job, reason="user", grace=0.5, waited=waited)])
        until(lambda: record_of(job), "the exit record")
        record = record_of(job)
        assert record is not None
        assert (record["ending"], record["stop_reason"], record["tree_gone"]) == ("stopped", "user", True)
        assert not [pid for pid in map(int, pids.read_text().split()) if self.is_alive(pid)]

    def test_another_backend_on_the_same_directory_goes_on(
        self, backend: Backend, make_backend: Callable[[], Backend], jobs: JobFactory
    ) -> None:
        job = jobs.make(["sleep", "600"])
        backend.submit(batch(job))
        until(lambda: sight(backend, job).presence is Presence.ALIVE, "alive")
        backend.close()
        successor = make_backend()
        try:
            assert sight(successor, job).presence is Presence.ALIVE
            successor.cancel([StopRequest(job=job, reason="user", grace=5)])
            until(lambda: record_of(job), "the exit record")
        finally:
            successor.close()

    def test_stopping_what_is_over_changes_nothing(self, backend: Backend, jobs: JobFactory) -> None:
        job = jobs.make(["true"])
        backend.submit(batch(job))
        until(lambda: record_of(job), "the exit record")
        before = record_of(job)
        backend.cancel([StopRequest(job=job, reason="user", grace=0)])
        assert record_of(job) == before
