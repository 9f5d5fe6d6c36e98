"""`site test` of a cluster behind login nodes says what is wrong with the way there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.hosts.remote_site import RemoteSite
from tests.labs.cluster import Cluster
from tests.labs.slurm import SlurmLab


@pytest.fixture
def site(slurm_lab: Callable[..., SlurmLab], reach: Callable[[Cluster, str], RemoteSite]) -> RemoteSite:
    return reach(slurm_lab(), "slurm")


def test_everything_works(site: RemoteSite) -> None:
    checks = site.backend().site_test()
    assert [check.name for check in checks if check.ok is False] == []
    assert {"commands", "scheduler", "directory", "interpreter", "probe"} <= {check.name for check in checks}


def test_a_way_that_is_closed_is_told_first(site: RemoteSite) -> None:
    for name in site.logins.names:
        site.logins.drop_connections(name)
        site.logins.kill_sshd(name)
    [check] = site.backend().site_test()
    assert check.ok is False
    assert check.text.startswith("login1 refuses connections")
