"""Every way in which a job ends on a real Slurm, made to happen for real, is told apart."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from runyard.backends.base import Presence, StopRequest
from runyard.model.resources import Resources
from runyard.runner import json_files
from runyard.testing.backend_contract import record_of
from tests.integration.agent.conftest import WAIT
from tests.integration.batch.site import Site, batch_of, begun, let_go_on, queued, recorded, silence, until, wait
from tests.labs.slurm import SlurmLab

GetLab = Callable[..., SlurmLab]


@pytest.fixture(params=[False, True], ids=["plain", "accounting"])
def lab(slurm_lab: GetLab, request: pytest.FixtureRequest) -> SlurmLab:
    return slurm_lab(accounting=request.param)


@pytest.fixture
def site(lab: SlurmLab) -> Site:
    return Site(lab, "slurm")


def test_scancel_by_somebody_else_is_told_by_the_runner_and_by_slurm(site: Site, lab: SlurmLab) -> None:
    job, backend = site.sleeper(scheduler="slurm"), site.backend()
    backend.submit(batch_of(job))
    lab.ask("scancel", begun(backend, job))
    until(lambda: recorded(job), "the exit record")
    record = record_of(job) or {}
    # Slurm signals one process after the other: a runner whose turn comes late has only seen its command die of it.
    of_command = (record["ending"], record["signal"]) == ("exit", signal.SIGTERM)
    assert of_command or (record["ending"], record["stop_reason"]) == ("stopped", "external"), record
    assert wait(backend, job, Presence.GONE).ending == "external"


def test_scancel_of_a_runner_that_cannot_tell(site: Site, lab: SlurmLab) -> None:
    job, backend = site.sleeper(), site.backend()
    backend.submit(batch_of(job))
    native = begun(backend, job)
    silence(job)
    lab.ask("scancel", native)
    seen = wait(backend, job, Presence.GONE)
    assert (record_of(job), seen.ending, "CANCELLED" in seen.text) == (None, "external", True)
    assert lab.options.accounting is (f"by {lab.user.uid}" in seen.text)


def test_scancel_while_it_waits(site: Site, lab: SlurmLab) -> None:
    job, backend = site.sleeper(), site.backend(hold="")
    backend.submit(batch_of(job))
    native = queued(backend, job)
    assert "pending in Slurm: JobHeldUser" in backend.poll([job])[job.key].text
    lab.ask("scancel", native)
    seen = wait(backend, job, Presence.GONE)
    assert (seen.ending, "CANCELLED" in seen.text) == ("external", True)


def test_scancel_of_one_task_of_a_waiting_array(site: Site, lab: SlurmLab) -> None:
    """Slurm keeps no record of it: only the rest of its array tells that it was there."""
    jobs = [site.sleeper() for _ in range(3)]
    backend = site.backend(hold="", command_timeout="5")
    site.backend(hold="").submit(batch_of(*jobs))
    lab.ask("scancel", queued(backend, jobs[1]))
    seen = wait(backend, jobs[1], Presence.GONE)
    assert (seen.ending, "before it began" in seen.text) == ("external", True)
    wait(backend, jobs[0], Presence.PENDING)


def test_the_time_limit(site: Site, lab: SlurmLab) -> None:
    job, backend = site.sleeper(), site.backend()
    backend.submit(batch_of(job))
    native = begun(backend, job)
    silence(job)
    lab.admin("scontrol", "update", f"jobid={native}", "EndTime=now")
    seen = wait(backend, job, Presence.GONE)
    assert (record_of(job), seen.ending, "TIMEOUT" in seen.text) == (None, "timeout", True)


def test_a_node_without_the_interpreter(site: Site, lab: SlurmLab) -> None:
    job, python = site.sleeper(), site.directory / "python"
    python.symlink_to("/usr/bin/python3")
    backend = site.backend(hold="", python=str(python))
    backend.submit(batch_of(job))
    native = queued(backend, job)
    python.unlink()
    lab.ask("scontrol", "release", native)
    seen = wait(site.backend(), job, Presence.GONE)
    assert (seen.ending, f"has no interpreter {python}" in seen.text) == ("launch", True)


def test_a_runner_that_is_killed(site: Site) -> None:
    job, backend = site.sleeper(), site.backend()
    backend.submit(batch_of(job))
    begun(backend, job)
    os.kill(json_files.read(f"{job.directory}/started/runner.json")["pid"], signal.SIGKILL)
    seen = wait(backend, job, Presence.GONE)
    assert (record_of(job), seen.ending, "FAILED" in seen.text) == (None, None, True)


def test_what_slurm_refuses(site: Site, lab: SlurmLab) -> None:
    job = site.sleeper()
    [refusal] = site.backend().submit(batch_of(job, partition="nosuch"))
    assert (refusal.key, refusal.final, refusal.ending) == (job.key, True, "rejected")
    assert "Invalid partition name specified" in refusal.text
    assert not lab.ask("squeue", "-h")


def test_what_runyard_gives_itself_is_refused_before_slurm_is_asked(site: Site) -> None:
    [refusal] = site.backend().submit(batch_of(site.sleeper(), **{"job-name": "mine"}))
    assert (refusal.final, refusal.ending) == (True, "rejected")
    assert "--name" in refusal.text
    assert "sbatch" not in site.host.programs()


@pytest.mark.parametrize("mode", ["cancel", "requeue"])
def test_preemption(slurm_lab: GetLab, mode: str) -> None:
    """A job that must not be requeued is preempted for good, whatever the cluster's habit."""
    site = Site(slurm_lab(preempt=mode), "slurm")
    job, backend = site.sleeper(), site.backend()
    backend.submit(batch_of(job, partition="scavenge", nodelist="n1", exclusive=""))
    begun(backend, job)
    silence(job)
    site.lab.ask("sbatch", "--partition=urgent", "--nodelist=n1", "--exclusive", "--wrap=sleep 5")
    seen = wait(backend, job, Presence.GONE)
    assert (record_of(job), seen.ending) == (None, "preempted")


def test_memory_that_slurm_enforces(slurm_lab: GetLab) -> None:
    site = Site(slurm_lab(cgroup_memory=True, accounting=True), "slurm")
    job, backend = site.jobs.make(["/usr/bin/python3", "-c", "x = bytearray(300 << 20)"]), site.backend()
    backend.submit(batch_of(job, resources=Resources(memory=50 << 20)))
    seen = wait(backend, job, Presence.GONE)
    assert (seen.ending, "OUT_OF_MEMORY" in seen.text) == ("oom", True)


def test_a_node_that_loses_its_power(slurm_lab: GetLab) -> None:
    lab = slurm_lab(isolate=True)
    site = Site(lab, "slurm")
    job, backend = site.sleeper(), site.backend()
    backend.submit(batch_of(job, nodelist="n3"))
    begun(backend, job)
    lab.node_power_off("n3")
    lab.declare_down("n3")
    seen = wait(backend, job, Presence.GONE, 120)
    assert (seen.ending, seen.node) == ("node_lost", "n3")
    lab.node_power_on("n3")


@pytest.mark.parametrize("kill9", [False, True])
def test_a_controller_that_restarts_disturbs_nobody(site: Site, lab: SlurmLab, kill9: bool) -> None:
    job, backend = site.jobs.make(["sh", "-c", f"{WAIT}; exit 4"]), site.backend()
    backend.submit(batch_of(job))
    lab.until_saved(begun(backend, job))
    lab.restart_controller(kill9=kill9)
    let_go_on(job)
    until(lambda: recorded(job), "the exit record")
    assert (record_of(job) or {})["exit_code"] == 4
    wait(backend, job, Presence.GONE)


def test_what_waits_and_is_stopped_leaves_the_queue(site: Site, lab: SlurmLab) -> None:
    jobs, backend = [site.sleeper() for _ in range(3)], site.backend(hold="")
    backend.submit(batch_of(*jobs))
    queued(backend, jobs[0])
    backend.cancel([StopRequest(job=job, reason="user", grace=5) for job in jobs])
    assert [(record_of(job) or {}).get("stop_reason") for job in jobs] == ["user"] * 3
    backend.poll(jobs)  # a stop is told when the queue is looked at
    until(lambda: not lab.ask("squeue", "-h"), "an empty queue")
    assert site.host.programs().count("scancel") == 1
