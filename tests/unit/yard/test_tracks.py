"""Tracks of the queue: what a run needs of a node, and which nodes have it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.model.nodes import Limits
from runyard.model.resources import Capacity, Gpu, Resources
from runyard.model.spec import RunSpec
from runyard.store.site_rows import Node
from runyard.yard.placement import tracks

GB = 1 << 30
LANE = "ada/digits"
HOFF = Node(name="hoff", total=Capacity(cpus=8, memory=32 * GB, gpus=(Gpu(uuid="1", type="A100", memory=40 * GB),)),
            labels=("fast", "rack=a"))  # fmt: skip
CLUSTER = Node(name="login", total=Capacity(elastic=True))


def track(**fields: Any) -> str:
    return tracks.track(LANE, RunSpec.parse({"command": "x", **fields}))


def test_most_runs_need_nothing_special() -> None:
    assert track() == track(resources={"memory": "512M", "time": "1h"}, tags="x") == LANE


@pytest.mark.parametrize(
    ("fields", "suits"),
    [
        ({}, True),
        ({"node": "hoff"}, True),
        ({"node": ["norman", "hoff"]}, True),
        ({"node": "norman"}, False),
        ({"exclude": "hoff"}, False),
        ({"labels": "rack=a"}, True),
        ({"labels": "rack=b"}, False),
        ({"resources": {"gpus": 1}}, True),
        ({"resources": {"gpus": 1, "gpu_type": "a100"}}, True),
        ({"resources": {"gpus": 1, "gpu_type": "h100"}}, False),
        ({"resources": {"gpus": 1, "gpu_memory": "80G"}}, False),
        ({"resources": {"gpus": 2}}, False),
        ({"resources": {"cpus": 8, "memory": "32G"}}, True),
        ({"resources": {"cpus": 16}}, False),
        ({"resources": {"memory": "64G"}}, False),
        ({"resources": {"nodes": 2}}, False),
    ],
)
def test_which_tracks_a_node_serves(fields: dict[str, Any], suits: bool) -> None:
    assert tracks.parse(track(**fields)).suits(HOFF) is suits
    assert tracks.parse(track(**fields)).suits(CLUSTER), "a scheduler decides for itself"


def test_limits_of_the_agent_and_of_its_token() -> None:
    of_ada = tracks.parse(track())
    limited = Node(name="hoff", total=HOFF.total, limits=Limits(users=("bob",)))
    assert not of_ada.suits(limited)
    assert not of_ada.suits(HOFF, Limits(projects=("words",)))
    assert of_ada.suits(HOFF, Limits(projects=("digits",)))


def test_a_sweep_over_the_memory_waits_in_a_handful_of_tracks() -> None:
    found = {track(resources={"memory": size << 20, "cpus": 1 + size % 7}) for size in range(1, 32_000, 7)}
    assert len(found) <= 21


_CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "node": st.lists(st.sampled_from(["hoff", "norman", "n.b"]), min_size=1),
        "exclude": st.lists(st.sampled_from(["hoff", "lecun"]), min_size=1),
        "labels": st.lists(st.sampled_from(["fast", "rack=a", "rack=b"]), min_size=1),
    },
)
_AMOUNTS = st.builds(
    lambda **asked: {name: value for name, value in asked.items() if value},
    cpus=st.integers(1, 20), memory=st.integers(0, 80 * GB), gpus=st.integers(0, 2),
    gpu_type=st.sampled_from([None, "a100", "h100"]),
)  # fmt: skip


@given(_CHOICES, _AMOUNTS)
def test_no_run_is_hidden_from_a_node_that_could_take_it(choice: dict[str, Any], amounts: dict[str, Any]) -> None:
    """The track may promise too much; it never promises too little."""
    spec = RunSpec.parse({"command": "x", "resources": amounts, **choice})
    found = tracks.parse(tracks.track(LANE, spec))
    assert (found.lane, found.choice) == (LANE, spec.choice)
    could = spec.choice.allows(HOFF.name, HOFF.labels) and not HOFF.total.shortages(Resources(**amounts))
    assert found.suits(HOFF) or not could
