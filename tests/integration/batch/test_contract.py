"""What every backend promises, on real clusters. tests/integration/hosts/test_batch_over_ssh.py runs the same tests
through login nodes, on Slurm and on Grid Engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import psutil
import pytest

from runyard.backends.batch.lifecycle import BatchBackend
from runyard.testing.backend_contract import BackendContract, JobFactory
from tests.integration.batch.site import Site
from tests.labs.gridengine import GridEngineLab
from tests.labs.slurm import SlurmLab


class OnCluster(BackendContract):
    hands_over_again = False
    kind: ClassVar[str] = "slurm"

    @pytest.fixture
    def directory(self, site: Site) -> Path:
        return site.directory

    @pytest.fixture
    def tmp_path(self, site: Site) -> Path:
        """A directory that the jobs' user may write to."""
        place = site.directory / "tmp"
        place.mkdir()
        site.lab.user.own(place)
        return place

    @pytest.fixture
    def make_backend(self, site: Site) -> Callable[[], BatchBackend]:
        return site.backend

    @pytest.fixture
    def jobs(self, site: Site) -> JobFactory:
        return site.jobs


class TestSlurm(OnCluster):
    @pytest.fixture
    def site(self, slurm_lab: Callable[..., SlurmLab]) -> Site:
        return Site(slurm_lab(), "slurm")


class TestSlurmWithAccounting(OnCluster):
    @pytest.fixture
    def site(self, slurm_lab: Callable[..., SlurmLab]) -> Site:
        return Site(slurm_lab(accounting=True), "slurm")


class TestGridEngine(OnCluster):
    _lab: GridEngineLab

    @pytest.fixture
    def site(self, gridengine_lab: Callable[..., GridEngineLab]) -> Site:
        type(self)._lab = gridengine_lab()
        return Site(self._lab, "gridengine")

    def is_alive(self, pid: int) -> bool:
        """Hosts are machines that count their processes by themselves."""
        try:
            commands = [text for node in self._lab.nodes for text in self._lab.node_commands(node).values()]
        except psutil.Error:  # one that ended while it was looked at
            return self.is_alive(pid)
        return any("stubborn.py" in text for text in commands)
