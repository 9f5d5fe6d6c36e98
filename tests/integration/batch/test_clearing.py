"""What is left of batches is cleared away, and nothing that anybody may still need."""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard.agent.agent import Agent
from runyard.agent.clean import batches
from runyard.agent.errands import InlineErrands
from runyard.backends.base import Batch, Job, StopRequest
from runyard.model.resources import Capacity, Resources
from runyard.model.site import SiteSpec
from tests.integration.agent.fake_yard import FakeYard
from tests.integration.batch.site import PATIENCE_S, Site, recorded, until
from tests.labs.cluster import Cluster
from tests.labs.slurm import SlurmLab


@pytest.fixture(params=["slurm", "gridengine"])
def site(request: pytest.FixtureRequest) -> Site:
    get: Callable[[], Cluster] = request.getfixturevalue(f"{request.param}_lab")
    return Site(get(), request.param)


class Names:
    """Of batches, as a yard gives them."""

    def __init__(self) -> None:
        self.yard = f"ry-{secrets.token_hex(4)}"

    def __call__(self, number: int, epoch: int = 1) -> str:
        return f"{self.yard}-{epoch}-{number}"


def batch_of(job: Job, name: str, owner: str = "cedar") -> Batch:
    return Batch(name=name, resources=Resources(), jobs=(dataclasses.replace(job, batch=name, index=1),), owner=owner)


def left(site: Site) -> set[str]:
    return {path.name for path in Path(site.directory, "batches").iterdir()}


def test_batches_go_when_nobody_needs_them(site: Site) -> None:
    name, other, backend = Names(), Names(), site.backend()
    jobs = {n: site.jobs.make(["true"]) for n in (name(1), name(2), name(3, epoch=2), name(4), other(1))}
    for batch, job in jobs.items():
        assert backend.submit(batch_of(job, batch, "oak" if batch == name(4) else "cedar")) == []
    until(lambda: recorded(*jobs.values()), "all exit records")
    until(lambda: backend.clear(name(9), "cedar", {name(2)}), "nothing in the queue")
    assert left(site) == {name(2), name(4), other(1)}, "one is kept, one is another site's, one another yard's"


def test_what_runs_keeps_its_manifest(site: Site) -> None:
    name, backend, sleeper = Names(), site.backend(), site.sleeper()
    backend.submit(batch_of(sleeper, name(1)))
    until(lambda: Path(sleeper.directory, "started").exists(), "its begin")
    assert not backend.clear(name(9), "cedar", ())
    assert left(site) == {name(1)}
    assert not recorded(sleeper)


def test_what_only_waits_leaves_the_queue(site: Site) -> None:
    """Who stopped it was gone before the scheduler was told."""
    name, backend = Names(), site.backend(**({"hold": ""} if site.kind == "slurm" else {"h": ""}))
    backend.submit(batch_of(site.sleeper(), name(1)))
    backend.submit(batch_of(site.sleeper(), name(2)))
    assert not backend.clear(name(9), "cedar", {name(2)}), "it has its manifest until it is gone"
    until(lambda: backend.clear(name(9), "cedar", {name(2)}), "nothing but what is kept in the queue")
    assert left(site) == {name(2)}
    assert not backend.clear(name(9), "cedar", ()), "what is kept is still in the queue"


def test_a_scheduler_that_does_not_answer_keeps_everything(slurm_lab: Callable[..., SlurmLab]) -> None:
    lab = slurm_lab()
    site, name = Site(lab, "slurm"), Names()
    job = site.jobs.make(["true"])
    site.backend().submit(batch_of(job, name(1)))
    until(lambda: recorded(job), "the exit record")
    lab.hang_controller()
    assert not site.backend(command_timeout="1").clear(name(9), "cedar", ())
    assert left(site) == {name(1)}


class Crew:
    """Agents of a cluster, one after the other, with a yard in memory and a clock that can be moved."""

    def __init__(self, site: Site, directory: Path) -> None:
        self.site, self.directory, self.yard, self.passed = site, directory, FakeYard(), 0.0

    def agent(self) -> Agent:
        return Agent(
            self.yard, self.site.backend(), self.directory, "cedar", Capacity(elastic=True), errands=InlineErrands(),
            described=SiteSpec(kind=self.site.kind), root=f"{self.site.directory}/runs",
            clock=lambda: time.monotonic() + self.passed,
        )  # fmt: skip

    def has_queued(self, batch: str) -> bool:
        command = ["squeue", "--format=%j"] if self.site.kind == "slurm" else ["qstat", "-r"]
        return batch in self.site.lab.ask(*command)

    def drive(self, agent: Agent, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, left(self.site)
            agent.wake()
            agent.tick()
            time.sleep(0.05)


def test_an_agent_clears_up_after_its_runs_and_after_one_that_died(site: Site, tmp_path: Path) -> None:
    crew, name = Crew(site, tmp_path), Names()
    early = crew.yard.submit(["true"], batch=name(1))
    first = crew.agent()
    crew.drive(first, lambda: early in crew.yard.ended)
    assert left(site) == {name(1)}
    late = crew.yard.submit(["true"], batch=name(2))
    second = crew.agent()  # it never heard of the first run
    crew.drive(second, lambda: late in crew.yard.ended)
    crew.passed += batches.EVERY_S
    crew.drive(second, lambda: left(site) == set())
    for agent in (first, second):
        agent.close()


def test_an_agent_that_died_between_the_wish_and_the_queue_leaves_nothing_waiting(site: Site, tmp_path: Path) -> None:
    crew, batch = Crew(site, tmp_path), Names()(1)
    held = crew.yard.submit(["true"], batch=batch, options={"hold": ""} if site.kind == "slurm" else {"h": ""})
    first, second = crew.agent(), crew.agent()
    crew.drive(first, lambda: crew.has_queued(batch))
    job = Job(key=held, directory=f"{site.directory}/runs/{held.run}/a1", tag="", batch=batch, index=1)
    site.backend().cancel([StopRequest(job=job, reason="user", grace=5)])
    crew.drive(second, lambda: held in crew.yard.ended)
    until(lambda: not crew.has_queued(batch), "out of the queue")
    for agent in (first, second):
        agent.close()
