"""A node that is reached by ssh only: what is started there goes on by itself, whatever becomes of us."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runyard import errors
from runyard.backends import ssh_check
from runyard.backends.base import Batch, Presence, StopRequest
from runyard.backends.ssh import SshBackend
from runyard.hosts import logins
from runyard.hosts.ssh import SshHost
from runyard.model.resources import Resources
from runyard.runner import kernel, supervisor
from tests.integration.agent.conftest import WAIT
from tests.integration.nodes.conftest import Make
from tests.integration.nodes.far_jobs import FarJobs, until
from tests.labs.accounts import NODE_PYTHON
from tests.labs.nodes import NodeLab

LONG = ["sh", "-c", "echo begun; exec sleep 600"]


@pytest.fixture
def jobs(backend: SshBackend, lab: NodeLab) -> FarJobs:
    return FarJobs(backend, lab.directory)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins, "FIRST_PAUSE_S", 0.5)
    monkeypatch.setattr(logins, "LONGEST_PAUSE_S", 0.5)


def test_a_run_has_the_environment_of_a_login_there(lab: NodeLab, jobs: FarJobs) -> None:
    script = "echo $HOME $USER; env | grep -c '^SSH_' ; ps -o tty= -p $$; uname -n"
    job = jobs.make(["sh", "-c", script])
    jobs.submit(job)
    until(lambda: jobs.record(job), "the record")
    home, ssh, terminal, node = jobs.read(job, "log").splitlines()
    assert (home, ssh, terminal.strip(), node) == (f"{lab.user.home} {lab.user.name}", "0", "?", "hoff")


class CountingHost(SshHost):
    """It notes what it asks for."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.asked: list[str] = []

    def _answering(self, request: Mapping[str, Any], *more: Any, **settings: Any) -> Any:
        self.asked.append(request["do"])
        return super()._answering(request, *more, **settings)


def test_a_batch_is_started_and_seen_in_one_request_each(lab: NodeLab, config: Path, tmp_path: Path) -> None:
    host = CountingHost(["hoff"], tmp_path / "spool", python=NODE_PYTHON, config=str(config), standing=True)
    with contextlib.closing(SshBackend(host, lab.directory, "hoff")) as backend:
        jobs = FarJobs(backend, lab.directory)
        made = [jobs.make(["sh", "-c", f"exit {number}"]) for number in range(20)]
        backend.facts()
        host.asked.clear()
        jobs.submit(*made)
        backend.poll(made)
        assert host.asked == ["call", "call"]
        until(lambda: all(jobs.record(job) for job in made), "the records")
        assert [(jobs.record(job) or {})["exit_code"] for job in made] == list(range(20))


def test_the_runner_is_copied_over_once_and_again_when_it_was_removed(lab: NodeLab, jobs: FarJobs) -> None:
    first = jobs.make(["true"])
    jobs.submit(first)
    until(lambda: jobs.record(first), "the record")
    jobs.backend.host.run(["sh", "-c", f"rm -r {lab.directory}/runner-*"], timeout=90)
    second = jobs.make(["true"])
    jobs.submit(second)
    until(lambda: jobs.record(second), "the second record")


def test_runs_go_on_without_connection_and_without_sshd(lab: NodeLab, jobs: FarJobs, make_backend: Make) -> None:
    lines = "for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.3; done"
    job = jobs.make(["sh", "-c", f"{lines}; {WAIT}"])
    jobs.submit(job)
    pid = jobs.runner(job)
    lab.drop_connections("hoff")
    lab.kill_sshd("hoff")
    until(lambda: jobs.backend.poll([job])[job.key].presence is Presence.UNKNOWN, "doubt")
    assert jobs.backend.trouble()
    lab.start_sshd("hoff")
    successor = FarJobs(make_backend(), lab.directory)
    successor.backend.host.put(job.directory, {"go-on": b""})
    until(lambda: successor.record(job), "the record")
    assert successor.read(job, "log").split() == list("123456789")
    assert pid and not successor.backend.trouble()


def test_a_killed_runner_is_gone_with_its_tree(lab: NodeLab, jobs: FarJobs) -> None:
    job = jobs.make(["sh", "-c", "setsid sleep 601 & exec sleep 602"])
    jobs.submit(job)
    runner = jobs.runner(job)
    until(lambda: {"sleep 601", "sleep 602"} <= set(lab.commands("hoff")), "both processes")
    jobs.backend.host.run(["kill", "-9", str(runner)], timeout=90)
    seen = jobs.until(job, Presence.GONE)
    assert "died without a record" in seen.text
    assert not [command for command in lab.commands("hoff") if command.startswith("sleep")]


def test_a_stop_ends_it_and_a_deaf_runner_is_killed(lab: NodeLab, jobs: FarJobs) -> None:
    polite, deaf = jobs.make(LONG), jobs.make(LONG)
    jobs.submit(polite, deaf)
    runner = jobs.runner(deaf)
    jobs.backend.host.run(["kill", f"-{signal.SIGSTOP.value}", str(runner)], timeout=90)
    jobs.backend.cancel([StopRequest(job=job, reason="user", grace=1) for job in (polite, deaf)])
    record = until(lambda: jobs.record(polite), "the record")
    assert (record["ending"], record["stop_reason"]) == ("stopped", "user")
    jobs.backend.cancel([StopRequest(job=deaf, reason="user", grace=1, waited=supervisor.DEAF_S + 2)])
    jobs.until(deaf, Presence.GONE)


def test_a_node_that_was_restarted_has_nothing_left(lab: NodeLab, jobs: FarJobs) -> None:
    job = jobs.make(LONG)
    jobs.submit(job)
    jobs.until(job, Presence.ALIVE)
    lab.reboot("hoff")
    seen = jobs.until(job, Presence.GONE)
    assert seen.text == "hoff was restarted while it ran"


def test_a_node_tells_what_it_has(lab: NodeLab, backend: SshBackend, make_backend: Make) -> None:
    facts, other = backend.facts(), make_backend("norman").facts()
    assert (facts.node, other.node) == ("hoff", "norman")
    assert facts.cpus >= 1 and facts.memory > 1 << 20 and facts.boot_id != other.boot_id


def test_site_test_names_what_works(backend: SshBackend) -> None:
    found = ssh_check.examine(backend)
    assert all(check.ok for check in found), found
    told = " / ".join(check.text for check in found)
    for words in ("lets us in", "its interpreter is version 3", "is writable", "cpus", "a probe ran"):
        assert words in told


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"node": "hoff", "python": "/no/such/python"}, "has no interpreter '/no/such/python'"),
        ({"node": "hoff", "directory": "/proc/runyard"}, "/proc/runyard on hoff cannot be used"),
        ({"node": "nowhere"}, "there is no host 'nowhere'"),
    ],
)
def test_site_test_names_what_does_not_work(make_backend: Make, settings: dict[str, str], words: str) -> None:
    found = ssh_check.examine(make_backend(**settings))
    assert found[-1].ok is False
    assert words in found[-1].text


def test_an_interpreter_that_is_too_old_is_told(lab: NodeLab, make_backend: Make) -> None:
    """A real one of that age is on no machine of today: this one says of itself what Python 3.5 would."""
    lie = "import sys; sys.version_info = (3, 5, 3); sys.version = '3.5.3 (default)'; exec(sys.argv[-1])"
    script = f'#!/bin/sh\nfor last; do :; done\nexec /usr/bin/python3 -c "{lie}" "$last"\n'
    make_backend().host.put(lab.directory, {"old-python": script.encode()})
    make_backend().host.run(["chmod", "755", f"{lab.directory}/old-python"], timeout=90)
    backend = make_backend(python=f"{lab.directory}/old-python")
    [check] = ssh_check.examine(backend)
    assert "version 3.5.3, and 3.6 is needed; name a newer one with --python PATH" in check.text


def test_a_directory_that_cannot_be_made_makes_the_node_useless(make_backend: Make) -> None:
    with pytest.raises(errors.ConfigError, match="/proc/runyard on hoff cannot be used"):
        make_backend(directory="/proc/runyard").facts()


def test_permits_end_by_the_nodes_clock_and_are_renewed_in_one_request(
    lab: NodeLab, config: Path, tmp_path: Path
) -> None:
    host = CountingHost(["hoff"], tmp_path / "spool", python=NODE_PYTHON, config=str(config), standing=True)
    with contextlib.closing(SshBackend(host, lab.directory, "hoff")) as backend:
        jobs = FarJobs(backend, lab.directory)
        made = [dataclasses.replace(jobs.make(LONG, permit={"seconds": 60}), permit=60.0) for _ in range(5)]
        heard_at = kernel.uptime()
        assert backend.submit(Batch(name="far", resources=Resources(), jobs=tuple(made), heard_at=heard_at)) == []
        until(lambda: all(jobs.runner(job) for job in made), "their runners")
        host.asked.clear()
        assert backend.renew(made[1:], kernel.uptime())
        assert host.asked == ["call"]
        assert backend.renew(made[:1], kernel.uptime() - 59.5)
        until(lambda: jobs.record(made[0]), "the end of the one that was not renewed")
        assert (jobs.record(made[0]) or {})["ending"] == "lost"
        assert not any(jobs.record(job) for job in made[1:])
        ends = [json.loads(jobs.read(job, "control.json"))["permit"]["until"] for job in made]
        assert max(ends) <= kernel.uptime() + 60, "the lab's nodes have our clock"


def test_a_start_whose_permit_was_over_when_it_arrived_does_not_begin(jobs: FarJobs) -> None:
    job = dataclasses.replace(jobs.make(["touch", "/tmp/never"], permit={"seconds": 60}), permit=60.0)
    batch = Batch(name="far", resources=Resources(), jobs=(job,), heard_at=kernel.uptime() - 61)
    assert jobs.backend.submit(batch) == []
    until(lambda: jobs.record(job), "the record")
    assert ((jobs.record(job) or {})["ending"], (jobs.record(job) or {})["child"]) == ("lost", None)
