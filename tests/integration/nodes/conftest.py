"""Nodes that are real machines as far as they can tell, and backends that reach them by ssh only."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard.backends.ssh import SshBackend
from runyard.hosts.ssh import SshHost
from tests.labs.accounts import NODE_PYTHON
from tests.labs.nodes import NodeLab

Make = Callable[..., SshBackend]


@pytest.fixture
def lab(node_lab: Callable[..., NodeLab]) -> NodeLab:
    return node_lab()


@pytest.fixture
def config(lab: NodeLab, tmp_path: Path) -> Path:
    """The lab's configuration under a name of its own: connections are shared by those who go by the same name."""
    return Path(shutil.copy(lab.configuration, tmp_path / "config"))


@pytest.fixture
def make_backend(lab: NodeLab, config: Path, tmp_path: Path) -> Iterator[Make]:
    """`make_backend("hoff")`: a fresh one, as after a restart."""
    made: list[SshBackend] = []

    def make(node: str = "hoff", *, directory: str = "", python: str = NODE_PYTHON) -> SshBackend:
        host = SshHost([node], tmp_path / "spool", python=python, config=str(config), standing=True)
        made.append(SshBackend(host, directory or lab.directory, node))
        return made[-1]

    yield make
    for backend in made:
        backend.close()


@pytest.fixture
def backend(make_backend: Make) -> SshBackend:
    return make_backend()
