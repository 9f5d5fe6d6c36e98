"""Fixtures: clusters that start when a test first asks, stay for the session, and are put in order after each test."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

import pytest

from tests.labs import gridengine, rabbitmq, slurm
from tests.labs.docker import DockerLab
from tests.labs.lab import Lab
from tests.labs.nodes import NodeLab
from tests.labs.s3 import S3Lab
from tests.labs.sshd import SshLab

L = TypeVar("L", bound=Lab)


class Labs:
    """Those that run, by what they are: two tests that ask for the same get the same."""

    def __init__(self) -> None:
        self._running: dict[Hashable, Lab] = {}

    def get(self, key: Hashable, make: Callable[[], L]) -> L:
        if key not in self._running:
            self._running[key] = make().__enter__()
        return self._running[key]  # type: ignore[return-value]  # the key names the kind

    def forget(self, lab: Lab) -> None:
        self._running = {key: other for key, other in self._running.items() if other is not lab}
        lab.__exit__()

    def close(self) -> None:
        for lab in reversed(self._running.values()):
            lab.__exit__()


@pytest.fixture(scope="session")
def labs() -> Iterator[Labs]:
    """One per session, which with xdist is one per worker."""
    labs = Labs()
    yield labs
    labs.close()


@pytest.fixture
def borrow(labs: Labs) -> Iterator[Callable[..., Any]]:
    """A lab for this test. One that cannot be put in order afterwards is ended, so that the next test gets its own."""
    used: list[Lab] = []

    def get(key: Hashable, make: Callable[[], L]) -> L:
        lab = labs.get(key, make)
        used.append(lab)
        return lab

    yield get
    for lab in dict.fromkeys(used):
        try:
            lab.tidy()
        except Exception:
            labs.forget(lab)
            raise


@pytest.fixture
def slurm_lab(component: Callable[[str], str], borrow: Callable[..., Any]) -> Callable[..., slurm.SlurmLab]:
    """`slurm_lab()` is a Slurm of three nodes; `slurm_lab(accounting=True)` another, see slurm.Options."""

    def get(**settings: Any) -> slurm.SlurmLab:
        options = slurm.Options(**settings)
        for name in _slurm_needs(options):
            component(name)
        lab: slurm.SlurmLab = borrow(options, lambda: slurm.SlurmLab(options))
        return lab

    return get


def _slurm_needs(options: slurm.Options) -> Iterator[str]:
    yield "slurm"
    if options.accounting:
        yield "slurmdbd"
    if options.isolate or options.gpus or options.cgroup_memory:
        yield "root"
    if options.cgroup_memory:
        yield "cgroup v1"


@pytest.fixture
def gridengine_lab(
    component: Callable[[str], str], borrow: Callable[..., Any]
) -> Callable[..., gridengine.GridEngineLab]:
    """`gridengine_lab()` is a Grid Engine of two hosts; see gridengine.Options."""

    def get(**settings: Any) -> gridengine.GridEngineLab:
        component("gridengine")
        component("root")
        options = gridengine.Options(**settings)
        lab: gridengine.GridEngineLab = borrow(options, lambda: gridengine.GridEngineLab(options))
        return lab

    return get


@pytest.fixture
def rabbitmq_lab(component: Callable[[str], str], borrow: Callable[..., Any]) -> Callable[..., rabbitmq.RabbitLab]:
    """`rabbitmq_lab()` is a broker of one node; `rabbitmq_lab(nodes=3)` a cluster, see rabbitmq.Options."""

    def get(**settings: Any) -> rabbitmq.RabbitLab:
        component("rabbitmq")
        options = rabbitmq.Options(**settings)
        lab: rabbitmq.RabbitLab = borrow(options, lambda: rabbitmq.RabbitLab(options))
        return lab

    return get


@pytest.fixture
def s3_lab(component: Callable[[str], str], borrow: Callable[..., Any]) -> Callable[..., S3Lab]:
    """`s3_lab()` is a store in plaintext, `s3_lab(tls=True)` one with a certificate."""

    def get(*, tls: bool = False) -> S3Lab:
        component("s3")
        lab: S3Lab = borrow(("s3", tls), lambda: S3Lab(tls=tls))
        return lab

    return get


@pytest.fixture
def ssh_lab(component: Callable[[str], str], borrow: Callable[..., Any]) -> Callable[..., SshLab]:
    """`ssh_lab(env=cluster.env)` are two login nodes, whose sessions see that environment."""

    def get(*names: str, env: dict[str, str] | None = None) -> SshLab:
        component("sshd")
        chosen, variables = names or ("login1", "login2"), env or {}
        lab: SshLab = borrow(("ssh", chosen, *sorted(variables.items())), lambda: SshLab(chosen, variables))
        return lab

    return get


@pytest.fixture
def node_lab(component: Callable[[str], str], borrow: Callable[..., Any]) -> Callable[..., NodeLab]:
    """`node_lab()` are three machines that can be reached by ssh only."""

    def get(*names: str) -> NodeLab:
        component("sshd")
        component("root")
        chosen = names or ("hoff", "norman", "pitts")
        lab: NodeLab = borrow(("nodes", chosen), lambda: NodeLab(chosen))
        return lab

    return get


@pytest.fixture
def docker_lab(component: Callable[[str], str], borrow: Callable[..., Any]) -> Callable[[], DockerLab]:
    """`docker_lab()` is a Docker on a machine of its own, with an image to build others from."""

    def get() -> DockerLab:
        component("docker")
        lab: DockerLab = borrow("docker", DockerLab)
        return lab

    return get
