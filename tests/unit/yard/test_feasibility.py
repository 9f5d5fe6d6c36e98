"""What a run is told at submit when no node could ever take it."""

from __future__ import annotations

from typing import Any

import pytest

from runyard import errors
from runyard.model.nodes import Limits
from runyard.model.resources import Capacity, Gpu
from runyard.model.spec import RunSpec
from runyard.store.site_rows import Node
from runyard.yard.placement import feasibility

SMALL, BIG = Capacity(cpus=2, memory=1 << 30), Capacity(cpus=64, memory=1 << 40, gpus=(Gpu(uuid="1", type="A100"),))
LAB = [
    Node(name="hoff.lab", total=SMALL, labels=("rack=a",)),
    Node(name="norman.lab", total=BIG, labels=("rack=b", "fast")),
]


def check(owner: str = "ada", sites: dict[str, list[Node]] | None = None, **fields: Any) -> None:
    feasibility.check(RunSpec.parse({"command": "x", **fields}), owner, sites or {"lab": LAB})


def refusal(**fields: Any) -> str:
    with pytest.raises((errors.InvalidInput, errors.Unsatisfiable)) as caught:
        check(**fields)
    return f"{caught.value.message}; {caught.value.fix}"


def test_what_fits_somewhere_passes() -> None:
    check()
    check(node="hoff")
    check(node=["hoff", "norman.lab"], resources={"cpus": 64})
    check(labels="fast", exclude="hoff", resources={"gpus": 1, "gpu_type": "a100"})


def test_a_name_that_no_node_has() -> None:
    assert refusal(node="hof") == "node: there is no node 'hof' at site 'lab'; did you mean 'hoff'?"
    told = refusal(exclude="zzz")
    assert told == "exclude: there is no node 'zzz' at site 'lab'; known: hoff, norman"


def test_labels_that_no_node_has() -> None:
    told = refusal(labels=["fast", "rack=a"])
    assert told.startswith("site 'lab' has no node where the label is fast and rack=a; labels there: fast, rack=a, ")


def test_a_node_that_is_too_small() -> None:
    told = refusal(node="hoff", resources={"cpus": 4})
    assert told.startswith("no site can ever give 4 cpus on hoff; cpus: the most that hoff.lab of site 'lab' can give")


def test_agents_that_take_others_runs_only() -> None:
    limited = [Node(name="hoff", total=BIG, limits=Limits(projects=("words",), users=("bob",)))]
    told = refusal(sites={"lab": limited})
    assert told == (
        "site 'lab' takes no runs of ada in the project default; its agents take those of project words, user bob"
    )
    check("bob", {"lab": limited}, project="words")


def test_the_nodes_of_a_cluster_are_for_its_scheduler_to_know() -> None:
    cluster = [Node(name="login", total=Capacity(elastic=True))]
    check(sites={"cedar": cluster}, node="cdr1234", labels="skylake")
    check(sites={"cedar": cluster, "lab": LAB}, node="cdr1234")
