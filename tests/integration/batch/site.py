"""Batch sites on the labs' clusters: a normal user's files and commands, and jobs that are real."""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from runyard.backends import registry
from runyard.backends.base import Batch, Job, Presence, Sighting
from runyard.backends.batch.lifecycle import BatchBackend
from runyard.backends.batch.options import parse
from runyard.hosts.base import Result
from runyard.hosts.local import LocalHost
from runyard.model.resources import Resources
from runyard.testing.backend_contract import JobFactory, record_of
from tests.labs.cluster import Cluster

SETTINGS = {"python": "/usr/bin/python3", "poll_interval": "1", "command_timeout": "15"}
PATIENCE_S = 120.0
PROGRAMS = frozenset({"sbatch", "squeue", "sacct", "scancel", "qsub", "qstat", "qacct", "qdel"})


class UserHost(LocalHost):
    """The login node of a lab, as its normal user sees it. It counts the commands that it runs."""

    def __init__(self, lab: Cluster) -> None:
        self._lab = lab
        self.commands: list[list[str]] = []
        self.variables: dict[str, str] = {}

    def run(self, argv: Sequence[str], *, timeout: float, input: bytes = b"") -> Result:
        self.commands.append(list(argv))
        options = {"env": self._lab.user.env({**self._lab.env, **self.variables}), **self._lab.user.popen_options()}
        try:
            done = subprocess.run(list(argv), input=input, capture_output=True, timeout=timeout, check=False, **options)
        except subprocess.TimeoutExpired:
            return Result(code=None)
        except OSError as error:
            return Result(code=127, stderr=str(error).encode())
        return Result(code=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def put(self, root: str, files: Mapping[str, bytes], directories: Iterable[str] = ()) -> None:
        super().put(root, files, directories)
        for path in (Path(root), *Path(root).parents, *(Path(root, name) for name in (*files, *directories))):
            if self._lab.directory in path.parents:
                self._lab.user.own(path)

    def install(self, target: str, files: Mapping[str, bytes]) -> None:
        super().install(target, files)
        for path in (Path(target), *Path(target).rglob("*")):
            self._lab.user.own(path)

    def programs(self) -> list[str]:
        """The scheduler's programs that were run, in order."""
        words = (word for command in self.commands for word in command)
        return [
            word for word in words if word in ("sbatch", "squeue", "sacct", "scancel", "qsub", "qstat", "qacct", "qdel")
        ]


class OwnedJobs(JobFactory):
    """Jobs whose directories belong to the normal user."""

    def __init__(self, root: Path, lab: Cluster) -> None:
        super().__init__(root)
        self._lab = lab

    def make(self, argv: list[str], **spec: Any) -> Job:
        job = super().make(argv, **spec)
        attempt = Path(job.directory)
        for path in (attempt.parent.parent, attempt.parent, attempt, *attempt.iterdir()):
            self._lab.user.own(path)
        return job


class Site:
    """One site's directory on a cluster, with backends on it, one after the other."""

    def __init__(self, lab: Cluster, kind: str, options: Mapping[str, str] | None = None) -> None:
        self.lab, self.kind = lab, kind
        self.directory = lab.directory / f"site-{secrets.token_hex(4)}"
        self.directory.mkdir()
        lab.user.own(self.directory)
        self.host = UserHost(lab)
        self.options = {**SETTINGS, **(options or {})}
        self.jobs = OwnedJobs(self.directory, lab)

    def backend(self, **more: str) -> BatchBackend:
        """A fresh one, as after a restart."""
        kind = registry.load(self.kind)
        assert issubclass(kind, BatchBackend)
        settings, dialect = parse({**self.options, **more}, kind.dialect)  # type: ignore[attr-defined]
        return kind(dialect, self.host, os.fspath(self.directory), settings)

    def sleeper(self, seconds: float = 600, **spec: Any) -> Job:
        return self.jobs.make(["sleep", str(seconds)], **spec)

    def log_of(self, job: Job) -> str:
        return Path(job.directory, "log").read_text()


def batch_of(*jobs: Job, resources: Resources | None = None, **options: str) -> Batch:
    return Batch(name=jobs[0].batch, resources=resources or Resources(), jobs=jobs, options=options)


def until(condition: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {patience_s:g} seconds"
        time.sleep(0.1)


def wait(backend: BatchBackend, job: Job, presence: Presence, patience_s: float = PATIENCE_S) -> Sighting:
    """Poll as an agent does, until the job is seen like this."""
    deadline = time.monotonic() + patience_s
    while (seen := backend.poll([job])[job.key]).presence is not presence:
        assert time.monotonic() < deadline, f"{job.key} is {seen}, not {presence}, after {patience_s:g} seconds"
        time.sleep(0.2)
    return seen


def queued(backend: BatchBackend, job: Job) -> str:
    """Its native id, once the scheduler tells that it waits."""
    found: list[str] = []

    def waits() -> bool:
        seen = backend.poll([job])[job.key]
        found[:] = [seen.native_id] if seen.presence is Presence.PENDING and seen.native_id else []
        return bool(found)

    until(waits, "the native id")
    return found[0]


def begun(backend: BatchBackend, job: Job) -> str:
    """Its native id, once its runner has begun."""
    until(Path(job.directory, "started", "runner.json").exists, "the runner")
    return str(wait(backend, job, Presence.ALIVE).native_id)


def runs_on(backend: BatchBackend, job: Job, node: str) -> bool:
    """Whether it has begun there, as the scheduler tells."""
    begun(backend, job)
    until(lambda: backend.poll([job])[job.key].node, "its node")
    return wait(backend, job, Presence.ALIVE).node == node


def let_go_on(job: Job) -> None:
    """For one that waits by `WAIT` of the agent's tests."""
    Path(job.directory, "go-on").touch()


def silence(job: Job) -> None:
    """From now on its runner can write nothing down, as on a disk that is full: no beat, no record."""
    if os.geteuid() == 0:
        os.chown(job.directory, 0, 0)
    os.chmod(job.directory, 0o555)


def recorded(*jobs: Job) -> bool:
    return all(record_of(job) for job in jobs)
