"""What every backend promises, over ssh."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard.backends.ssh import SshBackend
from runyard.hosts.ssh import SshHost
from runyard.testing.backend_contract import BackendContract, JobFactory
from tests.integration.batch.site import OwnedJobs
from tests.labs.accounts import NODE_PYTHON
from tests.labs.sshd import SshLab
from tests.labs.supervise import remove


class OverSsh(BackendContract):
    """The node is this machine, so that the contract can look into its directories and at its processes."""

    standing: bool

    @pytest.fixture
    def lab(self, ssh_lab: Callable[..., SshLab]) -> SshLab:
        return ssh_lab("hoff")

    @pytest.fixture
    def directory(self, lab: SshLab) -> Iterator[Path]:
        place = Path(tempfile.mkdtemp(prefix="ry-node-"))
        lab.user.own(place)
        yield place
        remove(place)

    @pytest.fixture
    def tmp_path(self, lab: SshLab, directory: Path) -> Path:
        """A directory that the jobs' user may write to."""
        place = directory / "tmp"
        place.mkdir()
        lab.user.own(place)
        return place

    @pytest.fixture
    def make_backend(
        self, lab: SshLab, directory: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> Callable[[], SshBackend]:
        spool, config = tmp_path_factory.mktemp("spool"), str(lab.configuration)

        def make() -> SshBackend:
            host = SshHost(["hoff"], spool, python=NODE_PYTHON, config=config, standing=self.standing)
            return SshBackend(host, str(directory), "hoff")

        return make

    @pytest.fixture
    def jobs(self, directory: Path, lab: SshLab) -> JobFactory:
        return OwnedJobs(directory, lab)


class TestStanding(OverSsh):
    """A process of ours waits there for the next request."""

    standing = True


class TestRequestByRequest(OverSsh):
    standing = False
