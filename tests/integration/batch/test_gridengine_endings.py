"""Every way in which a job ends on a real Grid Engine, made to happen for real, is told apart."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard.backends.base import Presence, StopRequest
from runyard.model.resources import Resources
from runyard.testing.backend_contract import record_of
from tests.integration.agent.conftest import WAIT
from tests.integration.batch.site import Site, batch_of, begun, let_go_on, queued, recorded, until, wait
from tests.labs.gridengine import GridEngineLab

GetLab = Callable[..., GridEngineLab]


@pytest.fixture
def lab(gridengine_lab: GetLab) -> GridEngineLab:
    return gridengine_lab()


@pytest.fixture
def site(lab: GridEngineLab) -> Site:
    return Site(lab, "gridengine")


def test_qdel_by_somebody_else(site: Site, lab: GridEngineLab) -> None:
    """It kills at once: the runner cannot tell."""
    job, backend = site.sleeper(), site.backend()
    backend.submit(batch_of(job))
    lab.ask("qdel", begun(backend, job))
    seen = wait(backend, job, Presence.GONE)
    assert (record_of(job), seen.ending) == (None, "external")
    assert "exit status 137" in seen.text


def test_qdel_of_what_waits_leaves_no_account(site: Site, lab: GridEngineLab) -> None:
    jobs, backend = [site.sleeper() for _ in range(3)], site.backend(h="", command_timeout="5")
    site.backend(h="").submit(batch_of(*jobs))
    lab.ask("qdel", queued(backend, jobs[1]))
    seen = wait(backend, jobs[1], Presence.GONE)
    assert (seen.ending, "before it began" in seen.text) == ("external", True)
    assert wait(backend, jobs[0], Presence.PENDING).text == "pending in Grid Engine: held (hqw)"


def test_the_time_limit(site: Site) -> None:
    job, backend = site.sleeper(), site.backend(time_margin="0")
    backend.submit(batch_of(job, resources=Resources(time=3)))
    seen = wait(backend, job, Presence.GONE)
    assert (record_of(job), seen.ending) == (None, "timeout")


def test_a_job_in_error_is_launch_with_the_reason_and_leaves_the_queue(site: Site, lab: GridEngineLab) -> None:
    job, backend = site.sleeper(), site.backend(h="")
    backend.submit(batch_of(job))
    native = queued(backend, job)
    shutil.rmtree(site.directory / "batches" / job.batch)
    lab.ask("qrls", native)
    seen = wait(backend, job, Presence.GONE)
    assert seen.ending == "launch"
    assert "can't chdir to" in seen.text
    until(lambda: backend.poll([job]) and not lab.ask("qstat"), "an empty queue")
    assert Path(job.directory, "started").is_dir(), "it can never begin"


def test_a_node_without_the_interpreter(site: Site, lab: GridEngineLab) -> None:
    job, python = site.sleeper(), site.directory / "python"
    python.symlink_to("/usr/bin/python3")
    backend = site.backend(h="", python=str(python))
    backend.submit(batch_of(job))
    native = queued(backend, job)
    python.unlink()
    lab.ask("qrls", native)
    seen = wait(site.backend(), job, Presence.GONE)
    assert (seen.ending, f"has no interpreter {python}" in seen.text) == ("launch", True)


def test_what_grid_engine_refuses(site: Site, lab: GridEngineLab) -> None:
    job = site.sleeper()
    [refusal] = site.backend().submit(batch_of(job, queue="nosuch"))
    assert (refusal.key, refusal.final, refusal.ending) == (job.key, True, "rejected")
    assert 'unknown queue "nosuch"' in refusal.text


def test_a_host_that_loses_its_power(gridengine_lab: GetLab) -> None:
    """Grid Engine only loses sight of it; the runner's silence is the second witness."""
    lab = gridengine_lab(max_unheard_s=10)
    site = Site(lab, "gridengine")
    job, backend = site.sleeper(), site.backend(queue="cpu@ge2")
    backend.submit(batch_of(job))
    begun(backend, job)
    lab.node_power_off("ge2")
    seen = wait(backend, job, Presence.GONE, 150)
    assert (seen.ending, seen.node) == ("node_lost", "ge2")
    lab.node_power_on("ge2")


@pytest.mark.parametrize("kill9", [False, True])
def test_a_qmaster_that_restarts_disturbs_nobody(site: Site, lab: GridEngineLab, kill9: bool) -> None:
    job, backend = site.jobs.make(["sh", "-c", f"{WAIT}; exit 4"]), site.backend()
    backend.submit(batch_of(job))
    begun(backend, job)
    lab.stop_qmaster(kill9=kill9)
    until(lambda: backend.poll([job])[job.key].presence is Presence.UNKNOWN, "doubt")
    lab.start_qmaster()
    let_go_on(job)
    until(lambda: recorded(job), "the exit record")
    assert (record_of(job) or {})["exit_code"] == 4
    wait(backend, job, Presence.GONE)


def test_what_waits_and_is_stopped_leaves_the_queue(site: Site, lab: GridEngineLab) -> None:
    jobs, backend = [site.sleeper() for _ in range(3)], site.backend(h="")
    backend.submit(batch_of(*jobs))
    queued(backend, jobs[0])
    backend.cancel([StopRequest(job=job, reason="user", grace=5) for job in jobs])
    assert [(record_of(job) or {}).get("stop_reason") for job in jobs] == ["user"] * 3
    backend.poll(jobs)  # a stop is told when the queue is looked at
    until(lambda: not lab.ask("qstat"), "an empty queue")
    assert site.host.programs().count("qdel") == 1
