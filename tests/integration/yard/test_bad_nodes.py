"""A node that failed an attempt is avoided by the next one, with the real queries."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runyard.model.resources import Capacity
from runyard.model.wire import Claim
from tests.integration.yard.conftest import Driver, ended, gone

ALL = ["error", "oom", "timeout", "preempted", "node_lost", "lost", "launch", "staging", "rejected", "disk"]
ELASTIC = Capacity(elastic=True)


@pytest.fixture
def cluster(driver: Driver) -> Driver:
    driver.hello(total=ELASTIC)
    return driver


def fail(driver: Driver, claim: Claim, ending: str, node: str | None) -> Claim:
    """The run's next attempt."""
    report = gone(claim) if ending == "lost" else ended(claim, ending)
    [following] = driver.sync(replace(report, node=node), free=ELASTIC, room=10).claims
    return following


def first(driver: Driver, **fields: object) -> Claim:
    driver.submit(retry={"max": 9, "on": ALL}, **fields)
    [claim] = driver.sync(free=ELASTIC, room=10).claims
    assert claim.avoid == ()
    return claim


@pytest.mark.parametrize("ending", ["node_lost", "launch", "lost"])
def test_what_the_node_may_be_blamed_for(cluster: Driver, ending: str) -> None:
    assert fail(cluster, first(cluster), ending, "n7").avoid == ("n7",)


@pytest.mark.parametrize("ending", ["oom", "timeout", "preempted", "error", "rejected"])
def test_what_it_may_not(cluster: Driver, ending: str) -> None:
    assert fail(cluster, first(cluster), ending, "n7").avoid == ()


def test_an_ending_without_a_node_blames_none(cluster: Driver) -> None:
    assert fail(cluster, first(cluster), "node_lost", None).avoid == ()


def test_the_latest_three_are_avoided(cluster: Driver) -> None:
    claim = first(cluster)
    for node in ("n1", "n2", "n3", "n1", "n4"):
        claim = fail(cluster, claim, "node_lost", node)
    assert claim.avoid == ("n3", "n1", "n4")


def test_of_several_nodes_none_is_blamed(cluster: Driver) -> None:
    claim = first(cluster, resources={"nodes": 2})
    assert fail(cluster, claim, "node_lost", "n[1-2]").avoid == ()


def test_an_agent_that_starts_anew_hears_of_them_again(cluster: Driver) -> None:
    claim = fail(cluster, first(cluster), "node_lost", "n7")
    assert [again.avoid for again in cluster.hello(total=ELASTIC)] == [claim.avoid] == [("n7",)]


def test_those_that_avoid_others_are_batches_of_their_own(cluster: Driver) -> None:
    cluster.submit(4, retry={"max": 1, "on": ["launch"]})
    claims = cluster.sync(free=ELASTIC, room=10).claims
    nodes = ["n1", "n1", "n2", "n2"]
    reports = [replace(ended(claim, "launch"), node=node) for claim, node in zip(claims, nodes, strict=True)]
    again = cluster.sync(*reports, free=ELASTIC, room=10).claims
    assert [claim.avoid for claim in again] == [(node,) for node in nodes]
    assert again[0].batch == again[1].batch != again[2].batch == again[3].batch
