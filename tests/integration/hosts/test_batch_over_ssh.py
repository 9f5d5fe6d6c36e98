"""What every backend promises, on real clusters behind login nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.batch import test_contract as on_clusters
from tests.integration.hosts.remote_site import RemoteSite
from tests.labs.cluster import Cluster
from tests.labs.gridengine import GridEngineLab
from tests.labs.slurm import SlurmLab


class TestSlurm(on_clusters.TestSlurm):
    @pytest.fixture
    def site(self, slurm_lab: Callable[..., SlurmLab], reach: Callable[[Cluster, str], RemoteSite]) -> RemoteSite:
        return reach(slurm_lab(), "slurm")


class TestGridEngine(on_clusters.TestGridEngine):
    @pytest.fixture
    def site(
        self, gridengine_lab: Callable[..., GridEngineLab], reach: Callable[[Cluster, str], RemoteSite]
    ) -> RemoteSite:
        type(self)._lab = gridengine_lab()
        return reach(self._lab, "gridengine")
