"""Which nodes a run may use, and whose runs an agent takes."""

from __future__ import annotations

from typing import Any

import pytest

from runyard import errors
from runyard.model import disk_reserve, nodes
from runyard.model.nodes import Limits, NodeChoice
from runyard.model.spec import RunSpec

GB = 1 << 30


@pytest.mark.parametrize(
    ("choice", "allowed"),
    [
        (NodeChoice(), True),
        (NodeChoice(node=("hoff",)), True),
        (NodeChoice(node=("norman", "HOFF.lab.example")), True),
        (NodeChoice(node=("norman",)), False),
        (NodeChoice(node=("hof",)), False),
        (NodeChoice(exclude=("hoff",)), False),
        (NodeChoice(exclude=("norman",)), True),
        (NodeChoice(node=("hoff",), exclude=("hoff",)), False),
        (NodeChoice(labels=("fast", "rack=a")), True),
        (NodeChoice(labels=("rack",)), True),
        (NodeChoice(labels=("rack=b",)), False),
        (NodeChoice(labels=("fast", "quiet")), False),
    ],
)
def test_a_choice(choice: NodeChoice, allowed: bool) -> None:
    assert choice.allows("hoff.lab.example", ("fast", "rack=a")) is allowed


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        ("fast", ("fast",)),
        (["rack=a", "fast", "fast"], ("fast", "rack=a")),
        ({"rack": "a", "fast": None, "quiet": ""}, ("fast", "quiet", "rack=a")),
    ],
)
def test_labels_in_three_ways(given: Any, labels: tuple[str, ...]) -> None:
    spec = RunSpec.parse({"command": "x", "labels": given})
    assert spec.labels == labels
    assert RunSpec.parse(spec.to_json()) == spec


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("node", "a,b", "'a,b' is not the name of a node"),
        ("node", ["ok", "-w"], "'-w' is not the name"),
        ("exclude", "a|b", "'a|b' is not the name"),
        ("node", 5, "5 is not the name"),
        ("labels", "rack=", "'rack=' is not a label"),
        ("labels", {"rack": "a&b"}, "'rack=a&b' is not a label"),
        ("labels", ["a b"], "'a b' is not a label"),
        ("node", [f"n{number}" for number in range(101)], "too many names"),
        ("exclude", ["n" * 200, "m" * 201], "too many names"),
    ],
)
def test_what_is_no_choice(field: str, value: Any, told: str) -> None:
    """Names become words of a scheduler, where these would mean something else."""
    with pytest.raises(errors.InvalidInput, match=f"{field}: .*") as caught:
        RunSpec.parse({"command": "x", field: value})
    assert told in caught.value.message


def test_a_choice_in_words() -> None:
    choice = NodeChoice(node=("hoff", "norman"), exclude=("lecun",), labels=("fast",))
    assert choice.describe() == "on hoff or norman, not on lecun, where the label is fast"
    assert NodeChoice.from_json(choice.to_json()) == choice
    assert not NodeChoice()


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [
        (Limits(), True),
        (Limits(projects=("digits",)), True),
        (Limits(users=("ada",)), True),
        (Limits(projects=("digits", "words"), users=("ada",)), True),
        (Limits(projects=("words",)), False),
        (Limits(projects=("digits",), users=("bob",)), False),
    ],
)
def test_limits(limits: Limits, allowed: bool) -> None:
    assert limits.allow("ada", "digits") is allowed


def test_a_node_is_known_by_its_short_name_too() -> None:
    assert nodes.is_called("hoff.lab", "hoff") and nodes.is_called("hoff", "Hoff")
    assert not nodes.is_called("hoff", "hoff.lab")


@pytest.mark.parametrize(
    ("text", "total", "kept"),
    [("", 10 * GB, GB // 2), ("", 1000 * GB, 2 * GB), ("0", GB, 0), ("10%", 10 * GB, GB), ("5G", GB, 5 * GB)],
)
def test_how_much_of_a_disk_is_left_alone(text: str, total: int, kept: int) -> None:
    assert disk_reserve.parse(text).of(total) == kept


@pytest.mark.parametrize("text", ["lots", "-1%", "101%", "x%"])
def test_what_is_no_reserve(text: str) -> None:
    with pytest.raises(errors.InvalidInput, match="disk_reserve"):
        disk_reserve.parse(text)
