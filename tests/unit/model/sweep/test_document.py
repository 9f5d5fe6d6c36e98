from __future__ import annotations

from typing import Any

import pytest

from runyard import errors
from runyard.model.sweep import SweepSpec
from runyard.model.sweep.seeds import seed_of

GRID: dict[str, Any] = {"command": ["train", "{lr}"], "space": {"lr": [1, 2]}}


def sweep(**fields: Any) -> SweepSpec:
    return SweepSpec.parse({**GRID, **fields})


@pytest.mark.parametrize(
    "document",
    [
        GRID,
        {**GRID, "minimize": "a/b", "stop": {"rule": "median", "grace": 3}, "reps": 4, "parallel": 2, "name": "x"},
        {**GRID, "method": "tpe", "trials": 9, "maximize": "acc", "space": {"lr": "log:1e-5..1"}, "seed": 8},
        {"command": "train {lr} {index}", "configurations": [{"lr": 1}, {"lr": 2, "w": 3}], "env": {"A": "b"}},
        {**GRID, "params": {"model": {"depth": 3}}, "params_as": "flags", "resources": {"gpus": 1}},
    ],
)
def test_a_document_survives_its_own_json(document: dict[str, Any]) -> None:
    parsed = SweepSpec.parse(document)
    assert SweepSpec.parse(parsed.to_json()) == parsed
    assert parsed.to_json() == SweepSpec.parse(parsed.to_json()).to_json()


def test_what_is_searched_is_what_a_sweep_is_known_by() -> None:
    same = [
        {}, {"reps": 5}, {"parallel": 3}, {"priority": 9}, {"resources": {"cpus": 2}}, {"fresh": True}, {"tags": ["a"]},
    ]  # fmt: skip
    other = [
        {"space": {"lr": [1]}}, {"seed": 1}, {"minimize": "x"}, {"command": ["other", "{lr}"]}, {"params": {"a": 1}},
        {"env": {"A": "1"}}, {"method": "random", "trials": 2},
    ]  # fmt: skip
    assert {sweep(**change).digest for change in same} == {sweep().digest}
    assert len({sweep(**change).digest for change in [{}, *other]}) == 1 + len(other)


def test_a_list_of_configurations_has_two_names() -> None:
    """param2val_list is what it is called elsewhere."""
    listed = [{"lr": 1}, {"lr": 2}]
    one = SweepSpec.parse({"command": ["train", "{lr}"], "configurations": listed})
    assert SweepSpec.parse({"command": ["train", "{lr}"], "param2val_list": listed}) == one
    with pytest.raises(errors.InvalidInput, match="param2val_list: there is configurations already") as refused:
        SweepSpec.parse({"command": ["train", "{lr}"], "configurations": listed, "param2val_list": listed})
    assert refused.value.fix == "leave out one of them"
    with pytest.raises(errors.InvalidInput, match="param2val_list: must be a list"):
        SweepSpec.parse({"command": ["train", "{lr}"], "param2val_list": {"lr": 1}})


def test_more_random_trials_are_the_same_and_more() -> None:
    few = sweep(space={"lr": "log:1e-5..1"}, method="random", trials=5).listed()
    assert sweep(space={"lr": "log:1e-5..1"}, method="random", trials=9).listed()[:5] == few


def test_a_run_may_say_how_it_is_stopped_beside_the_rule() -> None:
    both = sweep(minimize="x", stop={"rule": "asha", "signal": "INT", "grace": 5})
    assert (both.run.stop.signal, both.run.stop.grace) == ("INT", 5)
    assert both.stop is not None
    own = sweep(stop={"grace": 5})
    assert (own.run.stop.grace, own.stop) == (5, None)


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        (["t", "{m}"], {"space": {"lr": [1, 2], "m": {"choices": [1], "when": {"lr": 1}}}}),
        (["t", "{w}"], {"space": None, "configurations": [{"w": 1}, {"lr": 1}]}),
        ("t {nothing}", {}),
    ],
)
def test_a_name_that_is_not_always_there(command: Any, fields: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput, match="is no parameter of every configuration"):
        sweep(command=command, **fields)


def test_seeds_depend_on_what_a_run_is() -> None:
    seeds = {seed_of(0, {"a": 1}, 1), seed_of(1, {"a": 1}, 1), seed_of(0, {"a": 2}, 1), seed_of(0, {"a": 1}, 2),
             seed_of(0, {"a": 1}, 1, 1)}  # fmt: skip
    assert len(seeds) == 5
    assert all(0 <= seed < 1 << 31 for seed in seeds)
    assert seed_of(0, {"a": 1, "b": 2}, 1) == seed_of(0, {"b": 2, "a": 1}, 1)
