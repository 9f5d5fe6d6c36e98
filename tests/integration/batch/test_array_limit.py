"""`array_limit`: how many tasks of one array run together, by the schedulers' own word."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from runyard.backends.base import Job
from runyard.testing.backend_contract import record_of
from tests.integration.batch.site import Site, batch_of, recorded, until
from tests.labs.cluster import Cluster

# The first ends well when it has met another one, the second when it has met nobody.
TOGETHER = 'mkdir "$1/$2"; for n in $(seq 900); do [ $(ls "$1" | wc -l) -ge 2 ] && exit 0; sleep 0.1; done; exit 9'
ALONE = 'mkdir "$1/only" || exit 9; sleep 2; rmdir "$1/only"'


@pytest.fixture(params=["slurm", "gridengine"])
def site(request: pytest.FixtureRequest) -> Site:
    get: Callable[[], Cluster] = request.getfixturevalue(f"{request.param}_lab")
    return Site(get(), request.param)


def make(site: Site, script: str, count: int) -> list[Job]:
    place = site.directory / "place"
    place.mkdir()
    site.lab.user.own(place)
    return [site.jobs.make(["sh", "-c", script, "sh", str(place), f"run{number}"]) for number in range(count)]


def codes(jobs: list[Job]) -> list[object]:
    until(lambda: recorded(*jobs), "all exit records")
    return [(record_of(job) or {})["exit_code"] for job in jobs]


def test_without_a_limit_they_run_together(site: Site) -> None:
    jobs = make(site, TOGETHER, 2)
    assert site.backend().submit(batch_of(*jobs)) == []
    assert codes(jobs) == [0, 0]


def test_with_a_limit_of_one_they_run_one_after_the_other(site: Site) -> None:
    jobs = make(site, ALONE, 4)
    assert site.backend().submit(batch_of(*jobs, array_limit="1")) == []
    assert codes(jobs) == [0, 0, 0, 0]
