from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runyard import errors
from runyard.bridges.training_runs import answers, grid

GRID = Path(__file__).parents[3] / "examples" / "ic-train" / "grid.json"
PLENTY = 1 << 26


def expand(**body: Any) -> list[dict[str, Any]]:
    return grid.configurations({"_run_group_type": "grid", **body}, PLENTY)


def test_the_example_grid_has_72_configurations_and_the_first_key_changes_fastest() -> None:
    found = grid.configurations(json.loads(GRID.read_text()), PLENTY)
    assert len(found) == 72
    assert all(run["_run_group_type"] == "grid" for run in found)
    assert [run["batch_size"] for run in found[:5]] == [16, 32, 64, 128, 16]
    bases = ["Inception_v3_iNaturalist", "Xception", "Inception_v3_iNaturalist"]
    assert [run["model"]["base"] for run in found[:9:4]] == bases
    assert [run["model"]["classifier"]["dropout"] for run in found[::8]] == [0.0, 0.3, 0.5] * 3
    assert [run["model"]["learning_rate"] for run in found[::24]] == [0.001, 0.005, 0.01]
    assert len({json.dumps(run) for run in found}) == 72


def test_without_a_group_a_list_is_a_value() -> None:
    assert grid.configurations({"layers": [1, 2]}, PLENTY) == [{"layers": [1, 2]}]


def test_items_of_a_list_are_values_as_they_are() -> None:
    assert [run["a"] for run in expand(a=[[1, 2], {"b": [3]}])] == [[1, 2], {"b": [3]}]


def test_a_grid_without_lists_is_one_run() -> None:
    assert expand(a=1, b={"c": {}}) == [{"_run_group_type": "grid", "a": 1, "b": {"c": {}}}]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"a": {"b": []}}, "grid: a.b has no values"),
        ({"a": list(range(101)), "b": {"c": list(range(100))}}, "grid: it has 10,100 configurations, more than 10,000"),
        ({str(n): list(range(100)) for n in range(50)}, "configurations, more than 10,000"),
        ({"text": "x" * 10_000, "a": list(range(10_000))}, "configurations make 95.9 MB, more than 64.0 MB"),
        ({"a": ["x", *["x" * 1_000_000] * 9], "b": list(range(10))}, "100 configurations make 85.8 MB, more than 64"),
    ],
)
def test_grids_that_are_refused(body: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        expand(**body)
    assert message in caught.value.message


@pytest.mark.parametrize("kind", ["random", "", 1, ["grid"]])
def test_groups_that_nobody_knows(kind: Any) -> None:
    with pytest.raises(errors.InvalidInput, match=r"_run_group_type: .* is not known"):
        grid.configurations({"_run_group_type": kind}, PLENTY)


def test_the_answer_to_a_request() -> None:
    body = {"batch_size": 32}
    one = answers.accepted(body, 1680439753, "/x/7", [7], group=False)
    assert one == {
        "processed_request": "Sun, 02 Apr 2023 12:49:13 GMT", "run_request": body, "id": 7, "url": "/x/7",
    }  # fmt: skip
    assert answers.accepted(body, 0, "/x", [7, 8], group=True)["ids"] == [7, 8]


def task(run: int, **more: Any) -> dict[str, Any]:
    return {
        "id": run, "owner": "web", "recipe": "ic-train", "params": {"lr": 1}, "site": "", "priority": 0, "attempt": 0,
        "started": None, **more,
    }  # fmt: skip


def test_the_status_of_an_idle_yard() -> None:
    shown = answers.status({"a@node": ["ic-train"]}, [], [], {}, {"queued": 0}, lambda run: True)
    assert shown == {
        "queued_tasks": {"a@node": []}, "registered_workers": {"a@node": ["ic-train"]}, "active_tasks": {"a@node": []},
        "scheduled_tasks": {"a@node": []}, "counts": {"queued": 0},
    }  # fmt: skip


def test_the_status_without_workers_is_null_and_still_true() -> None:
    shown = answers.status({}, [task(1)], [], {}, {}, lambda run: True)
    assert (shown["registered_workers"], shown["active_tasks"], shown["scheduled_tasks"]) == (None, None, None)
    assert [entry["id"] for entry in shown["queued_tasks"]["runyard@any"]] == ["1"]


def test_tasks_of_others_are_counted_without_their_arguments() -> None:
    load = {"a@node": [task(1, started=5.0, attempt=2), task(2, owner="ada")]}
    shown = answers.status({"a@node": []}, [], [], load, {}, lambda run: run["owner"] == "web")
    mine, other = shown["active_tasks"]["a@node"]
    assert (mine["args"], mine["time_start"], mine["hostname"]) == ([{"lr": 1}], 5.0, "a@node")
    assert mine["delivery_info"]["redelivered"] and not other["delivery_info"]["redelivered"]
    assert (other["id"], other["args"]) == ("2", [])
