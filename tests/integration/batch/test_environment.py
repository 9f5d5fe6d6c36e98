"""What a job sees of who submitted it, on real clusters."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from runyard.backends.base import Job
from tests.integration.batch.site import Site, batch_of, recorded, until
from tests.labs.cluster import Cluster

GetLab = Callable[..., Cluster]


@pytest.fixture(params=["slurm", "gridengine"])
def site(request: pytest.FixtureRequest) -> Site:
    get: GetLab = request.getfixturevalue(f"{request.param}_lab")
    return Site(get(), request.param)


def environment(site: Site, **variables: str) -> dict[str, str]:
    """Of a job whose submitter has these variables beside the usual ones."""
    site.host.variables = variables
    job: Job = site.jobs.make(["env"], inherit_env=True)
    assert site.backend().submit(batch_of(job)) == []
    until(lambda: recorded(job), "the exit record")
    return dict(line.split("=", 1) for line in site.log_of(job).splitlines() if "=" in line)


def test_the_users_home_and_none_of_the_agents_secrets(site: Site) -> None:
    found = environment(site, API_KEY="secret")
    assert (found["HOME"], found["USER"]) == (str(site.lab.user.home), site.lab.user.name)
    assert found["PATH"]
    assert "API_KEY" not in found
    assert "LC_ALL" not in found


def test_slurm_loads_no_login_environment_for_each_task(slurm_lab: GetLab) -> None:
    """`su -` on the node takes longer than a short task, and with slow profiles longer than Slurm waits for it."""
    assert "MAIL" not in environment(Site(slurm_lab(), "slurm"))
