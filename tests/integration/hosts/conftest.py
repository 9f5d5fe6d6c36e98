"""Login nodes that are real, and directories on them that the normal user may write to."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard.hosts.ssh import SshHost
from tests.integration.hosts.remote_site import RemoteSite
from tests.labs.cluster import Cluster
from tests.labs.sshd import SshLab
from tests.labs.supervise import remove


@pytest.fixture
def lab(ssh_lab: Callable[..., SshLab]) -> SshLab:
    return ssh_lab()


@pytest.fixture
def far_directory(lab: SshLab) -> Iterator[str]:
    """A directory on the login nodes."""
    directory = Path(tempfile.mkdtemp(prefix="ry-place-"))
    lab.user.own(directory)
    yield str(directory)
    remove(directory)


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def config(lab: SshLab, tmp_path: Path) -> Path:
    """The lab's configuration under a name of its own: connections are shared by those who go by the same name."""
    return Path(shutil.copy(lab.configuration, tmp_path / "config"))


@pytest.fixture
def make_host(lab: SshLab, config: Path, spool: Path) -> Callable[..., SshHost]:
    """`make_host("login2")` goes there only, `make_host()` wherever the lab has a login node."""

    def make(*logins: str, python: str = "/usr/bin/python3") -> SshHost:
        return SshHost(logins or lab.names, spool, python=python, config=str(config))

    return make


@pytest.fixture
def host(make_host: Callable[..., SshHost]) -> SshHost:
    return make_host()


@pytest.fixture
def reach(
    ssh_lab: Callable[..., SshLab], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Cluster, str], RemoteSite]:
    """A site on this cluster, through two login nodes of it."""

    def make(cluster: Cluster, kind: str) -> RemoteSite:
        return RemoteSite(cluster, kind, ssh_lab(env=cluster.env), tmp_path_factory.mktemp("spool"))

    return make
