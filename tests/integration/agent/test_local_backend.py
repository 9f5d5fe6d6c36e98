"""The local backend: what every backend promises, and what happens when runners and zygotes are killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard import errors
from runyard.backends.base import Job, Presence, StopRequest
from runyard.backends.local import LocalBackend
from runyard.runner import json_files, supervisor, zygote_link
from runyard.testing.backend_contract import BackendContract, JobFactory, batch, is_alive, record_of, sight, until


def runner_of(job: Job) -> dict[str, Any]:
    path = Path(job.directory, "started", "runner.json")
    until(path.exists, "runner.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def zygote_pid(site: Path) -> int:
    connected = zygote_link.connect(site)
    try:
        connected.ping()
        [pong] = [notice for notice in connected.wait(90) if "pong" in notice]
        return int(pong["pid"])
    finally:
        connected.close()


def end(backend: LocalBackend, job: Job) -> None:
    backend.cancel([StopRequest(job=job, reason="user", grace=5)])
    until(lambda: record_of(job), "the exit record")


class TestContract(BackendContract):
    @pytest.fixture
    def directory(self, site: Path) -> Path:
        return site

    @pytest.fixture
    def make_backend(self, directory: Path) -> Callable[[], LocalBackend]:
        return lambda: LocalBackend(directory)


class TestContractWithoutZygote(BackendContract):
    """Where no zygote can listen, each runner has an interpreter of its own."""

    @pytest.fixture
    def make_backend(self, tmp_path: Path) -> Callable[[], LocalBackend]:
        (tmp_path / zygote_link.SOCKET).mkdir(exist_ok=True)
        return lambda: LocalBackend(tmp_path)


@pytest.fixture
def backend(site: Path) -> Iterator[LocalBackend]:
    made = LocalBackend(site)
    yield made
    made.close()


@pytest.fixture
def jobs(site: Path) -> JobFactory:
    return JobFactory(site)


def test_an_end_is_noticed_at_once(backend: LocalBackend, jobs: JobFactory) -> None:
    job = jobs.make(["true"])
    backend.submit(batch(job))
    until(lambda: job.directory in backend.notices(), "the notice")
    assert record_of(job)
    assert backend.wake_fds()


def test_a_killed_runner_is_gone_with_its_tree(backend: LocalBackend, jobs: JobFactory, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"setsid sh -c 'echo $$ >> {pids}; exec sleep 600' & echo $$ >> {pids}; exec sleep 600"
    job = jobs.make(["sh", "-c", script])
    backend.submit(batch(job))
    until(lambda: pids.exists() and len(pids.read_text().split()) == 2, "both processes")
    os.kill(runner_of(job)["pid"], signal.SIGKILL)
    until(lambda: sight(backend, job).presence is Presence.GONE, "gone")
    assert not [pid for pid in map(int, pids.read_text().split()) if is_alive(pid)]
    assert record_of(job) is None


def test_a_killed_runner_without_zygote_is_swept(site: Path, jobs: JobFactory, tmp_path: Path) -> None:
    """Nobody adopts its orphans, so the search by tag and session has to find them."""
    (site / zygote_link.SOCKET).mkdir()
    backend, pids = LocalBackend(site), tmp_path / "pids"
    script = f"setsid sh -c 'echo $$ >> {pids}; exec sleep 600' & echo $$ >> {pids}; exec sleep 600"
    job = jobs.make(["sh", "-c", script])
    backend.submit(batch(job))
    until(lambda: pids.exists() and len(pids.read_text().split()) == 2, "both processes")
    os.kill(runner_of(job)["pid"], signal.SIGKILL)
    backend.notices()
    until(lambda: sight(backend, job).presence is Presence.GONE, "gone")
    assert not [pid for pid in map(int, pids.read_text().split()) if is_alive(pid)]


def test_a_runner_of_another_boot_is_gone(backend: LocalBackend, jobs: JobFactory) -> None:
    job = jobs.make(["true"])
    started = Path(job.directory, "started")
    started.mkdir()
    said = {"pid": os.getpid(), "start_time": 1, "boot_id": "another", "node": os.uname().nodename, "session": 1}
    (started / "runner.json").write_text(json.dumps(said))
    found = sight(backend, job)
    assert found.presence is Presence.GONE
    assert "restarted" in found.text


def test_a_runner_on_another_machine_is_unknown(backend: LocalBackend, jobs: JobFactory) -> None:
    job = jobs.make(["true"])
    started = Path(job.directory, "started")
    started.mkdir()
    said = {"pid": 1, "start_time": 1, "boot_id": "another", "node": "elsewhere", "session": 1}
    (started / "runner.json").write_text(json.dumps(said))
    found = sight(backend, job)
    assert (found.presence, found.node) == (Presence.UNKNOWN, "elsewhere")
    assert "elsewhere" in found.text


def test_a_runner_that_did_not_say_who_it_is_is_unknown(backend: LocalBackend, jobs: JobFactory) -> None:
    job = jobs.make(["true"])
    Path(job.directory, "started").mkdir()
    assert sight(backend, job).presence is Presence.UNKNOWN


def test_a_deaf_runner_is_killed(backend: LocalBackend, jobs: JobFactory) -> None:
    job = jobs.make(["sleep", "600"])
    backend.submit(batch(job))
    runner = runner_of(job)
    os.kill(runner["pid"], signal.SIGSTOP)
    backend.cancel([StopRequest(job=job, reason="user", grace=1, waited=0)])
    assert is_alive(runner["pid"])
    backend.cancel([StopRequest(job=job, reason="user", grace=1, waited=1 + supervisor.DEAF_S + 1)])
    until(lambda: sight(backend, job).presence is Presence.GONE, "gone")


def test_a_deaf_runner_is_killed_though_each_tick_of_cron_begins_anew(backend: LocalBackend, jobs: JobFactory) -> None:
    """None of them has waited: how long the wish has been there is all that they know."""
    job = jobs.make(["sleep", "600"])
    backend.submit(batch(job))
    runner = runner_of(job)
    os.kill(runner["pid"], signal.SIGSTOP)
    wish = StopRequest(job=job, reason="user", grace=1)
    for _ in range(2):
        backend.cancel([wish])
        assert is_alive(runner["pid"])
    then = time.time() - (1 + supervisor.DEAF_S + 1)
    os.utime(Path(job.directory, "control.json"), (then, then))
    backend.cancel([wish])
    until(lambda: sight(backend, job).presence is Presence.GONE, "gone")


def test_a_runner_that_has_heard_is_left_to_its_work(backend: LocalBackend, jobs: JobFactory) -> None:
    """However long it takes: what the runner cannot kill, nobody can."""
    job = jobs.make(["sh", "-c", "trap '' TERM; touch trapped; while :; do sleep 0.1; done"], beat=0.1)
    backend.submit(batch(job))
    runner = runner_of(job)
    until(Path(job.directory, "trapped").exists, "the trap")
    backend.cancel([StopRequest(job=job, reason="user", grace=600)])
    until(lambda: (json_files.read(f"{job.directory}/status.json") or {}).get("ending"), "the runner says it heard")
    backend.cancel([StopRequest(job=job, reason="user", grace=600, waited=10_000)])
    assert is_alive(runner["pid"])
    backend.cancel([StopRequest(job=job, reason="user", grace=0)])
    until(lambda: record_of(job), "the exit record")


def test_killing_the_zygote_disturbs_nobody(backend: LocalBackend, jobs: JobFactory, site: Path) -> None:
    running = jobs.make(["sleep", "600"])
    backend.submit(batch(running))
    until(lambda: sight(backend, running).presence is Presence.ALIVE, "alive")
    os.kill(zygote_pid(site), signal.SIGKILL)
    until(lambda: not backend.notices() and not backend.wake_fds(), "the line is dead")
    later = jobs.make(["sh", "-c", "exit 7"])
    backend.submit(batch(later))
    until(lambda: record_of(later), "the later one's record")
    assert sight(backend, running).presence is Presence.ALIVE
    end(backend, running)


def test_a_start_that_died_with_the_zygote_is_made_again(backend: LocalBackend, jobs: JobFactory, site: Path) -> None:
    backend.notices()
    pid = zygote_pid(site)
    os.kill(pid, signal.SIGSTOP)
    job = jobs.make(["true"])
    assert backend.submit(batch(job)) == []
    assert sight(backend, job).presence is Presence.PENDING
    os.kill(pid, signal.SIGKILL)
    until(lambda: backend.notices() is not None and record_of(job), "the exit record")


def test_a_zygote_of_another_version_is_replaced(site: Path, jobs: JobFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    old = LocalBackend(site)
    running = jobs.make(["sleep", "600"])
    old.submit(batch(running))
    until(lambda: sight(old, running).presence is Presence.ALIVE, "alive")
    before = zygote_pid(site)
    old.close()
    changed = site / "changed-runner"
    shutil.copytree(Path(zygote_link.__file__).parent, changed, ignore=shutil.ignore_patterns("__pycache__"))
    (changed / "extra.py").write_text("")
    monkeypatch.setattr("runyard.runner.HERE", str(changed))
    new = LocalBackend(site)
    job = jobs.make(["true"])
    new.submit(batch(job))
    until(lambda: record_of(job), "the exit record")
    assert zygote_pid(site) != before
    assert is_alive(before), "it stays while it has a runner"
    end(new, running)
    until(lambda: not is_alive(before), "the old zygote ends after its last runner")
    new.close()


def test_a_zygote_that_does_not_answer_is_done_without(
    site: Path, jobs: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = LocalBackend(site)
    backend.notices()
    pid = zygote_pid(site)
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr("runyard.backends.zygote.ANSWER_S", 0.2)  # from here on: a busy one takes longer
    try:
        job = jobs.make(["true"])
        backend.submit(batch(job))
        until(lambda: backend.notices() is not None and record_of(job), "the exit record")
        assert not backend.wake_fds()
    finally:
        os.kill(pid, signal.SIGCONT)
        backend.close()


def test_a_start_that_cannot_be_made_is_refused(site: Path, jobs: JobFactory) -> None:
    backend = LocalBackend(site, python="/no/such/python")
    [refusal] = backend.submit(batch(jobs.make(["true"])))
    assert "no such file" in refusal.text


def test_unknown_options_are_refused(site: Path) -> None:
    with pytest.raises(errors.ConfigError, match="pyton"):
        LocalBackend.build(site, {"pyton": "/usr/bin/python3"})


def test_the_runner_gets_nothing_of_the_agents_secrets(
    site: Path, jobs: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNYARD_TOKEN", "ry_b7f3")
    backend = LocalBackend(site)
    job = jobs.make(["sleep", "600"])
    backend.submit(batch(job))
    runner = runner_of(job)
    assert b"ry_b7f3" not in Path(f"/proc/{runner['pid']}/environ").read_bytes()
    end(backend, job)
    backend.close()
