"""What every backend promises, on real clusters behind login nodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runyard.hosts.ssh import SshHost
from tests.integration.batch import test_contract as on_clusters
from tests.integration.batch.site import Site
from tests.labs.cluster import Cluster
from tests.labs.gridengine import GridEngineLab
from tests.labs.slurm import SlurmLab
from tests.labs.sshd import SshLab


class RemoteSite(Site):
    """The agent's machine sees nothing of it but what ssh shows."""

    def __init__(self, cluster: Cluster, kind: str, logins: SshLab, spool: Path) -> None:
        super().__init__(cluster, kind)
        config = str(logins.configuration)
        self.host: Any = SshHost(logins.names, spool, python="/usr/bin/python3", config=config)


@pytest.fixture
def reach(ssh_lab: Callable[..., SshLab], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Site]:
    """A site on this cluster, seen through two login nodes of it."""

    def make(cluster: Cluster, kind: str) -> Site:
        return RemoteSite(cluster, kind, ssh_lab(env=cluster.env), tmp_path_factory.mktemp("spool"))

    return make


class TestSlurm(on_clusters.TestSlurm):
    @pytest.fixture
    def site(self, slurm_lab: Callable[..., SlurmLab], reach: Callable[..., Site]) -> Site:
        return reach(slurm_lab(), "slurm")


class TestGridEngine(on_clusters.TestGridEngine):
    @pytest.fixture
    def site(self, gridengine_lab: Callable[..., GridEngineLab], reach: Callable[..., Site]) -> Site:
        type(self)._lab = gridengine_lab()
        return reach(self._lab, "gridengine")
