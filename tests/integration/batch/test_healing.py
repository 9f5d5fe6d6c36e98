"""No job is lost and none executes twice, whoever forgets what."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard.backends.base import Job, Presence
from runyard.testing.backend_contract import record_of
from tests.integration.batch.site import Site, batch_of, begun, recorded, until, wait
from tests.labs.cluster import Cluster
from tests.labs.gridengine import GridEngineLab
from tests.labs.slurm import SlurmLab

GetSlurm = Callable[..., SlurmLab]
GetGridEngine = Callable[..., GridEngineLab]


@pytest.fixture(params=["slurm", "gridengine"])
def site(request: pytest.FixtureRequest) -> Site:
    get: Callable[[], Cluster] = request.getfixturevalue(f"{request.param}_lab")
    return Site(get(), request.param)


def once(site: Site) -> Job:
    return site.jobs.make(["sh", "-c", "echo once >> times; sleep 1"])


def times(job: Job) -> str:
    return Path(job.directory, "times").read_text()


def submits(site: Site) -> int:
    return len([word for word in site.host.programs() if word in ("sbatch", "qsub")])


def test_an_agent_that_died_after_the_submit_finds_its_batch_again(site: Site) -> None:
    jobs = [once(site) for _ in range(4)]
    site.backend().submit(batch_of(*jobs))
    assert site.backend().submit(batch_of(*jobs)) == []
    until(lambda: recorded(*jobs), "all exit records")
    site.backend().submit(batch_of(*jobs))
    assert submits(site) == 1
    assert [times(job) for job in jobs] == ["once\n"] * 4


def test_an_agent_that_died_before_the_submit_hands_it_over_later(site: Site) -> None:
    """The manifest is there, so it may be on its way: only after the submit's time is it known not to be."""
    job = once(site)
    dead = site.backend(bin="/bin/false-directory", command_timeout="10")
    dead.submit(batch_of(job))
    backend = site.backend(command_timeout="10")
    assert backend.poll([job])[job.key].presence is Presence.UNKNOWN
    assert backend.submit(batch_of(job)) == []
    assert submits(site) == 0, "its fate was unknown"
    wait(backend, job, Presence.ABSENT)
    assert backend.submit(batch_of(job)) == []
    until(lambda: recorded(job), "the exit record")
    assert times(job) == "once\n"


def test_a_part_of_a_batch_can_be_handed_over_by_itself(site: Site) -> None:
    jobs = [once(site) for _ in range(5)]
    backend = site.backend()
    assert backend.submit(batch_of(jobs[1], jobs[2], jobs[4])) == []
    assert backend.submit(batch_of(jobs[0], jobs[3])) == []
    until(lambda: recorded(*jobs), "all exit records")
    assert [times(job) for job in jobs] == ["once\n"] * 5


def test_a_job_that_slurm_forgot_is_handed_over_again_though_its_id_is_anothers(slurm_lab: GetSlurm) -> None:
    lab = slurm_lab()
    site = Site(lab, "slurm")
    lab.ask("sbatch", "--hold", "--wrap=true")
    saved = lab.saved_state()
    job, backend = once(site), site.backend(command_timeout="10")
    site.backend(begin="now+3600").submit(batch_of(job))
    lost = lab.ask("squeue", "-h", "-o", "%i", f"--name={job.batch}").strip()
    lab.lose_what_came_after(saved)
    # Slurm forgot what came after its last save, and counts on from there.
    given_again = (lab.submit("--hold", wrap="true") for _ in range(20))
    assert any(number == lost for number in given_again), "this is what makes ids worthless"
    wait(backend, job, Presence.ABSENT)
    assert backend.submit(batch_of(job)) == []
    until(lambda: recorded(job), "the exit record")
    assert times(job) == "once\n"


def test_a_controller_that_hangs_makes_everything_unknown_and_nothing_else(slurm_lab: GetSlurm) -> None:
    lab = slurm_lab()
    site = Site(lab, "slurm")
    job, backend = site.sleeper(), site.backend(command_timeout="5")
    site.backend().submit(batch_of(job))
    begun(backend, job)
    lab.hang_controller()
    seen = wait(backend, job, Presence.UNKNOWN)
    assert "Slurm does not answer: squeue: no answer within 5 seconds" in seen.text
    other = site.sleeper()
    assert backend.submit(batch_of(other)) == [], "whether it was taken is not known"
    lab.resume_controller()
    wait(backend, job, Presence.ALIVE)


def test_a_database_that_is_down_makes_only_the_missing_unknown(slurm_lab: GetSlurm) -> None:
    lab = slurm_lab(accounting=True)
    site = Site(lab, "slurm")
    running, missing = site.sleeper(), site.sleeper()
    backend = site.backend(command_timeout="5")
    site.backend(bin="/bin/false-directory").submit(batch_of(missing))
    site.backend().submit(batch_of(running))
    begun(backend, running)
    lab.stop_slurmdbd()

    def accounts_are_silent() -> bool:
        seen = backend.poll([running, missing])
        presences = [seen[job.key].presence for job in (running, missing)]
        return presences == [Presence.ALIVE, Presence.UNKNOWN] and "database" in seen[missing.key].text

    until(accounts_are_silent, "the accounts' silence")


@pytest.mark.parametrize("count", [2, 40])
def test_the_number_of_commands_does_not_depend_on_the_number_of_jobs(slurm_lab: GetSlurm, count: int) -> None:
    site = Site(slurm_lab(), "slurm")
    jobs, backend = [site.sleeper() for _ in range(count)], site.backend(poll_interval="3600", hold="")
    backend.submit(batch_of(*jobs))
    for _ in range(5):
        backend.poll(jobs)
    assert site.host.programs() == ["sbatch", "squeue"]


def test_limits_of_slurm_are_met_by_feeding(slurm_lab: GetSlurm) -> None:
    lab = slurm_lab(accounting=True, max_submit_jobs=5, max_array_size=4)
    site = Site(lab, "slurm")
    lab.ask("sbatch", "--hold", "--wrap=true")  # jobs of the user that are not ours count too
    go_on = site.directory / "go-on"
    script = f"echo once >> times; until [ -e {go_on} ]; do sleep 0.1; done; sleep 1"
    jobs, backend = [site.jobs.make(["sh", "-c", script]) for _ in range(11)], site.backend()
    assert backend.submit(batch_of(*jobs)) == []
    assert backend.room() == 0
    held = backend.poll(jobs)[jobs[-1].key]
    assert (held.presence, "not handed to Slurm yet" in held.text) == (Presence.PENDING, True)
    go_on.touch()
    until(lambda: backend.poll(jobs) and recorded(*jobs), "all exit records", 150)
    assert [times(job) for job in jobs] == ["once\n"] * 11
    until(lambda: all(seen.presence is Presence.GONE for seen in backend.poll(jobs).values()), "all gone")


def test_limits_of_grid_engine_are_met_by_feeding(gridengine_lab: GetGridEngine) -> None:
    lab = gridengine_lab(max_aj_tasks=4, max_u_jobs=2)
    site = Site(lab, "gridengine")
    lab.ask("qsub", "-h", "-b", "y", "true")
    jobs, backend = [once(site) for _ in range(10)], site.backend()
    assert backend.submit(batch_of(*jobs)) == []
    until(lambda: backend.poll(jobs) and recorded(*jobs), "all exit records", 150)
    assert [times(job) for job in jobs] == ["once\n"] * 10


def test_the_site_test_on_a_cluster_that_works(site: Site) -> None:
    checks = site.backend().site_test()
    assert [check.name for check in checks if check.ok is False] == []
    assert {"commands", "scheduler", "directory", "interpreter", "accounting", "limits", "probe"} <= {
        check.name for check in checks
    }
    assert "is version 3." in checks[-1].text


def test_the_site_test_names_what_is_missing(site: Site) -> None:
    checks = site.backend(bin="/bin/false-directory").site_test()
    assert (checks[-1].name, checks[-1].ok) == ("commands", False)
    assert "bin=" in checks[-1].fix
    assert site.backend(python="/no/python").site_test()[-1].name == "interpreter"


def test_nodes_that_failed_are_avoided(site: Site) -> None:
    *avoided, left = site.lab.nodes
    jobs, backend = [site.sleeper() for _ in range(2)], site.backend()
    assert backend.submit(dataclasses.replace(batch_of(*jobs), avoid=tuple(avoided))) == []
    until(lambda: {seen.node for seen in backend.poll(jobs).values()} == {left}, "all on the node that is left")


def test_the_scheduler_explains_one_job(site: Site) -> None:
    option = {"hold": ""} if site.kind == "slurm" else {"h": ""}
    job, backend = site.sleeper(), site.backend(**option)
    backend.submit(batch_of(job))
    until(lambda: re.search("held|hold", backend.explain(job), re.IGNORECASE), "the reason")
    assert record_of(job) is None
