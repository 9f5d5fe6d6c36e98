"""Several nodes of one site: which run goes where, with the real queries."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from runyard import errors
from runyard.model.nodes import Limits
from runyard.model.resources import Capacity
from runyard.model.roles import Caller, NewToken, Role
from runyard.model.site import SiteSpec
from runyard.model.spec import RunSpec
from runyard.model.wire import Disk, Hello, SyncRequest
from runyard.yard import Yard
from tests.integration.yard.conftest import GB, Driver, gpus

SITE = "boxes"
SMALL = Capacity(cpus=2, memory=8 * GB)


class Node:
    """One node's agent, as the yard hears it."""

    def __init__(
        self, yard: Yard, name: str, total: Capacity = SMALL, caller: Caller | None = None, **more: Any
    ) -> None:
        self.name, self.total, self._yard = name, total, yard
        self._caller = caller or Caller(name=name, role=Role.AGENT, site=SITE)
        hello = Hello(site=SITE, agent=name, node=name, boot_id="boot", version="1", total=total, **more)
        self._incarnation, _ = yard.hello(self._caller, hello).result()

    def take(self, cpus: int | None = None, *, disk: Disk | None = None, ahead: int = 0) -> list[int]:
        free = self.total if cpus is None else dataclasses.replace(self.total, cpus=cpus)
        request = SyncRequest(
            site=SITE, agent=self.name, incarnation=self._incarnation, free=free, disk=disk, ahead=ahead
        )
        return [claim.key.run for claim in self._yard.sync(self._caller, request).result().claims]


@pytest.fixture
def pool(driver: Driver) -> Driver:
    """A driver whose runs go to the site of nodes."""
    driver.yard.sites.add(SITE, SiteSpec(served_by="agent")).result()
    return driver


def submit(driver: Driver, count: int = 1, **fields: Any) -> list[int]:
    return driver.submit(count, site=SITE, **fields)


def test_a_node_gets_only_what_may_run_there(pool: Driver) -> None:
    hoff = Node(pool.yard, "hoff.lab", labels=("rack=a",))
    norman = Node(pool.yard, "norman.lab", labels=("rack=b", "fast"))
    [named], [fast], [not_hoff] = submit(pool, node="hoff"), submit(pool, labels="fast"), submit(pool, exclude="hoff")
    [either], [anywhere] = submit(pool, node=["hoff", "norman"]), submit(pool)
    assert norman.take(8) == [fast, not_hoff, either, anywhere]
    assert hoff.take(8) == [named]


def test_a_crowd_that_waits_for_another_node_hides_nothing(pool: Driver) -> None:
    """In the same lane, and of a higher priority."""
    hoff, norman = Node(pool.yard, "hoff"), Node(pool.yard, "norman")
    crowd = submit(pool, 300, node="hoff", priority=9)
    mine = submit(pool, 3)
    assert norman.take() == mine[:2]
    assert norman.take(1) == mine[2:]
    assert norman.take() == []
    assert hoff.take() == crowd[:2]


def test_a_crowd_that_is_too_big_for_a_node_hides_nothing(pool: Driver) -> None:
    big = Node(pool.yard, "big", Capacity(cpus=64, memory=512 * GB, gpus=gpus("A100", "H100")))
    small = Node(pool.yard, "small")
    submit(pool, 50, resources={"cpus": 16}, priority=9)
    submit(pool, 50, resources={"memory": "100G"}, priority=9)
    submit(pool, 50, resources={"gpus": 1}, priority=9)
    mine = submit(pool, 2)
    assert small.take() == mine
    [wanted] = submit(pool, resources={"gpus": 1, "gpu_type": "h100"}, priority=99)
    assert big.take()[0] == wanted


def test_order_within_a_lane_is_kept_across_what_runs_need(pool: Driver) -> None:
    hoff, _ = Node(pool.yard, "hoff", Capacity(cpus=8, memory=8 * GB)), Node(pool.yard, "norman")
    first, second, third = submit(pool, node="hoff")[0], submit(pool)[0], submit(pool, resources={"cpus": 2})[0]
    [urgent] = submit(pool, exclude="norman", priority=1)
    assert hoff.take() == [urgent, first, second, third]


def test_fair_share_counts_across_what_runs_need(pool: Driver) -> None:
    hoff = Node(pool.yard, "hoff")
    alices = submit(pool, 4, node="hoff")
    [bobs] = submit(pool, caller=pool.bob)
    assert sorted(hoff.take()) == sorted([alices[0], bobs])


def test_slots_are_kept_for_a_big_run_that_names_its_node(pool: Driver) -> None:
    hoff, norman = Node(pool.yard, "hoff"), Node(pool.yard, "norman")
    [big] = submit(pool, node="hoff", resources={"cpus": 2})
    small = submit(pool, 6)
    assert hoff.take(1) == small[:1], "small ones pass at first"
    pool.clock.now += 31
    assert hoff.take(1) == [], "then the free slot is kept, there"
    assert norman.take(1) == small[1:2], "and nowhere else"
    assert hoff.take(2) == [big]


def test_batches_are_of_one_choice(pool: Driver) -> None:
    """A scheduler is told once for all of a batch."""
    pool.yard.sites.add("cedar", SiteSpec(kind="slurm", served_by="agent")).result()
    hello = Hello(site="cedar", agent="c", node="login", boot_id="b", version="1", total=Capacity(elastic=True))
    incarnation, _ = pool.yard.hello(pool.admin, hello).result()
    for choice in ({"node": "n1"}, {"node": "n1"}, {"node": "n2"}, {"labels": "fast"}):
        pool.submit(site="cedar", **choice)
    request = SyncRequest(site="cedar", agent="c", incarnation=incarnation, free=hello.total, room=10)
    claims = pool.yard.sync(pool.admin, request).result().claims
    sizes: dict[str, int] = {}
    for claim in claims:
        sizes[claim.batch] = sizes.get(claim.batch, 0) + 1
    assert sorted(sizes.values()) == [1, 1, 2]
    assert claims[0].spec["node"] == ["n1"]


def test_an_agent_that_takes_some_peoples_runs_only(pool: Driver) -> None:
    of_bob = Node(pool.yard, "hoff", limits=Limits(users=("bob",)))
    of_digits = Node(pool.yard, "norman", limits=Limits(projects=("digits",)))
    [alices] = submit(pool, project="digits")
    [bobs] = submit(pool, caller=pool.bob)
    assert of_bob.take() == [bobs]
    assert of_digits.take() == [alices]
    with pytest.raises(errors.Unsatisfiable, match="takes no runs of alice in the project words"):
        submit(pool, project="words")


def test_a_limited_token_gets_no_others_runs_whatever_its_agent_says(pool: Driver) -> None:
    limits = Limits(users=("bob",))
    made = pool.yard.access.create(NewToken(name="t", role=Role.AGENT, site=SITE, limits=limits)).result()
    assert made["limits"] == {"projects": [], "users": ["bob"]}
    caller = pool.yard.authenticate(made["secret"])
    greedy = Node(pool.yard, "hoff", caller=caller)
    submit(pool)
    [bobs] = submit(pool, caller=pool.bob)
    assert greedy.take() == [bobs]
    with pytest.raises(errors.InvalidInput, match="only an agent's token"):
        pool.yard.access.create(NewToken(name="x", role=Role.MEMBER, limits=limits)).result()


def test_a_node_that_nobody_has_is_an_error_at_submit(pool: Driver) -> None:
    submit(pool, node="anything")
    Node(pool.yard, "hoff")
    with pytest.raises(errors.InvalidInput, match="there is no node 'hof' at site 'boxes'") as caught:
        submit(pool, node="hof")
    assert caught.value.fix == "did you mean 'hoff'?"
    with pytest.raises(errors.InvalidInput, match="no node 'hof'"):
        pool.yard.plan(pool.alice, RunSpec.parse({"command": "x", "site": SITE, "node": "hof"}))


def test_a_site_shows_its_nodes_and_who_runs_what(pool: Driver) -> None:
    hoff = Node(pool.yard, "hoff", labels=("fast",), limits=Limits(projects=("default",)))
    Node(pool.yard, "norman")
    [run] = submit(pool)
    room = Disk(path="/scratch", free=10 * GB, kept=2 * GB)
    assert hoff.take(disk=room) == [run]
    shown = {node["name"]: node for node in pool.yard.sites.get(SITE)["nodes"]}
    assert set(shown) == {"hoff", "norman"}
    assert (shown["hoff"]["state"], shown["hoff"]["labels"]) == ("alive", ["fast"])
    assert shown["hoff"]["disk"] == room.to_json()
    assert shown["hoff"]["limits"] == {"projects": ["default"], "users": []}
    [held] = shown["hoff"]["runs"]
    assert (held["id"], held["owner"], held["project"], held["state"]) == (run, "alice", "default", "starting")
    assert shown["norman"]["runs"] == []
    pool.yard.sites.drain(SITE, True).result()
    assert {node["state"] for node in pool.yard.sites.get(SITE)["nodes"]} == {"drained"}
    pool.yard.sites.drain(SITE, False).result()
    heard = shown["hoff"]["since"]
    pool.clock.now += 3600
    hoff.take(0)
    states = {node["name"]: (node["state"], node["since"]) for node in pool.yard.sites.get(SITE)["nodes"]}
    assert states == {"hoff": ("alive", heard), "norman": ("unreachable", heard)}


def test_a_full_disk_is_a_state_that_says_what_to_do(pool: Driver) -> None:
    hoff = Node(pool.yard, "hoff")
    full = Disk(path="/var/tmp", free=GB, kept=2 * GB)
    assert hoff.take(0, disk=full) == []
    [run] = submit(pool)
    [agent] = [agent for agent in pool.yard.sites.agents() if agent["name"] == "hoff"]
    trouble = "hoff starts nothing: 1.0 GB free in /var/tmp, 2.0 GB are reserved; free some space or lower disk_reserve"
    assert (agent["state"], agent["trouble"]) == ("full", trouble)
    assert pool.yard.get_run(run)["detail"] == f"waits: {trouble}"
    Node(pool.yard, "norman")
    assert pool.yard.get_run(run)["detail"] is None, "another node may take it"
    assert hoff.take(disk=dataclasses.replace(full, free=3 * GB)) == [run]
    assert pool.yard.get_run(run)["detail"] is None


def test_a_run_says_when_all_that_could_take_it_are_away(pool: Driver) -> None:
    hoff = Node(pool.yard, "hoff")
    Node(pool.yard, "norman")
    [run], [free] = submit(pool, node="norman"), submit(pool)
    pool.clock.now += 3600
    hoff.take(0)
    assert pool.yard.get_run(run)["detail"] == "waits: norman is unreachable"
    assert pool.yard.get_run(free)["detail"] is None
    pool.yard.sites.drain(SITE, True).result()
    assert pool.yard.get_run(free)["detail"] == "waits: site boxes is drained"


def test_hints_go_to_all_agents_when_a_run_is_not_for_all_of_them(pool: Driver) -> None:
    for name in ("hoff", "norman", "pitts"):
        Node(pool.yard, name)
    submit(pool)
    assert pool.yard.demand()[SITE] == 1
    submit(pool, node="pitts")
    assert pool.yard.demand()[SITE] == 3
