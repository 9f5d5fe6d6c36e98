from __future__ import annotations

import math
from typing import Any

import pytest

from runyard import errors
from runyard.model.sweep import sampling, text
from runyard.model.sweep.space import Space, identity, merged


@pytest.mark.parametrize(
    ("typed", "means"),
    [
        ("0.1,0.01", [0.1, 0.01]),
        ("adam,sgd", ["adam", "sgd"]),
        ("2..8", {"from": 2, "to": 8}),
        ("0.0..1.0", {"from": 0.0, "to": 1.0}),
        ("-3..-1", {"from": -3, "to": -1}),
        ("log:1e-5..1e-1", {"from": 1e-5, "to": 1e-1, "log": True}),
        ("64..512/64", {"from": 64, "to": 512, "step": 64}),
        ('["a,b", null]', ["a,b", None]),
        ('"x,y",z', ["x,y", "z"]),
        ("z,'x,y'", ["z", "x,y"]),
        ('"1",2', ["1", 2]),
        ('"1..5"', ["1..5"]),
        ("it's,5'", ["it's", "5'"]),
        ('"open,1', ['"open', 1]),
        ('"say \\"a,b\\"",c', ['say "a,b"', "c"]),
        ("a,,b", ["a", "", "b"]),
        (" sgd, adam , 0.1", ["sgd", "adam", 0.1]),
        ("\"x, y\" , ' z'", ["x, y", " z"]),
        ("2 .. 8", {"from": 2, "to": 8}),
        ("log: 1e-5 .. 1e-1", {"from": 1e-5, "to": 1e-1, "log": True}),
        ("64 .. 512 / 64", {"from": 64, "to": 512, "step": 64}),
        ("true", [True]),
        ("../data", ["../data"]),
        ("NaN", ["NaN"]),
        ("1", [1]),
    ],
)
def test_what_people_type(typed: str, means: Any) -> None:
    found = text.parse(typed, "x")
    assert found == means
    assert [type(value) for value in found] == [type(value) for value in means]


@pytest.mark.parametrize("typed", ["1..x", "x..1", "log:1", "log:a..b", "1..", "..5", "1..9/x", "[1", "[1]]"])
def test_what_is_no_range(typed: str) -> None:
    with pytest.raises(errors.InvalidInput):
        text.parse(typed, "x")


def test_words_of_the_command_line() -> None:
    assert text.parse_words(["lr=0.1,1", "m.depth=1..3"]) == {"lr": [0.1, 1], "m.depth": {"from": 1, "to": 3}}
    with pytest.raises(errors.InvalidInput, match="there twice"):
        text.parse_words(["lr=1", "lr=2"])


def test_the_first_name_is_the_fastest() -> None:
    space = Space.parse({"a": [1, 2], "b": "3..4"})
    assert list(space.grid()) == [{"a": 1, "b": 3}, {"a": 2, "b": 3}, {"a": 1, "b": 4}, {"a": 2, "b": 4}]


def test_names_nest() -> None:
    space = Space.parse({"model": {"depth": [1], "width": [2]}, "model.kind": ["x"]})
    assert list(space.grid()) == [{"model": {"depth": 1, "width": 2, "kind": "x"}}]
    assert merged({"model": {"seed": 1}}, {"model": {"depth": 2}}) == {"model": {"seed": 1, "depth": 2}}


def test_a_parameter_is_there_only_with_values_of_another() -> None:
    space = Space.parse(
        {
            "opt": ["sgd", "adam", "lbfgs"],
            "sgd": {
                "when": {"opt": "sgd"},
                "momentum": [0.5, 0.9],
                "nesterov": {"choices": [1], "when": {"sgd.momentum": 0.9}},
            },
        }
    )
    assert list(space.grid()) == [
        {"opt": "sgd", "sgd": {"momentum": 0.5}}, {"opt": "adam"}, {"opt": "lbfgs"},
        {"opt": "sgd", "sgd": {"momentum": 0.9, "nesterov": 1}},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"a": {"choices": [1], "when": {"b": 1}}, "b": [1]}, "'b' comes after it"),
        ({"a": {"when": {"b": 1}}, "b": [1]}, "space.a: there is no value"),
        ({"a": [float("nan")]}, "space.a\\[0\\]"),
        ({"a": [{1, 2}]}, "space.a\\[0\\]"),
        ({"a": {"from": 0, "to": float("inf")}}, "space.a.to: inf is not a number"),
        ({"a": {"from": True, "to": 3}}, "space.a.from: True is not a number"),
        ({"a": {"from": 1, "to": 100, "log": True, "step": 1}}, "a log range has no steps"),
        ({"a": {"from": 1, "to": 10**400}}, "space.a.to: the number is too large"),
        ({"a": {"from": 0.0, "to": 1e300, "step": 1e-300}}, "space.a.step: 1e-300 is too small"),
        ({"a": [1], "a.b": [2]}, "space.a: it has values, and a.b is inside of it"),
        ({"a": {"b": [1]}, "a.b": [2]}, "space.a.b: it is there twice"),
        ({"": [1]}, "'' is no name"),
        ({"a": {"": [1]}}, "'' is no name"),
        ({"a..b": [1]}, "'a..b' is no name"),
        ({1: [1]}, "1 is no name"),
        ({"a" * 201: [1]}, "longer than 200"),
    ],
)
def test_spaces_that_make_no_sense(space: Any, message: str) -> None:
    with pytest.raises(errors.InvalidInput, match=message):
        Space.parse(space)


def test_a_grid_of_numbers_without_end_is_refused_in_a_sentence() -> None:
    with pytest.raises(errors.InvalidInput, match="too many"):
        next(Space.parse({f"p{number}": {"from": 1, "to": 10**300} for number in range(20)}).grid())


@pytest.mark.parametrize("draw", [sampling.draw, sampling.spread])
def test_draws_are_within_bounds_and_do_not_depend_on_how_many(draw: Any) -> None:
    space = Space.parse({"lr": "log:1e-5..1e-1", "d": "2..8", "w": "64..500/64", "x": "0.0..1.0", "o": ["a", "b"]})
    many = [params for params, _ in zip(draw(space, 7), range(500), strict=False)]
    assert [params for params, _ in zip(draw(space, 7), range(10), strict=False)] == many[:10]
    assert next(draw(space, 8)) != many[0]
    assert all(1e-5 <= params["lr"] <= 1e-1 and 0 <= params["x"] <= 1 for params in many)
    assert {params["d"] for params in many} == set(range(2, 9))
    assert {params["w"] for params in many} == {64 * n for n in range(1, 8)}
    below = sum(params["lr"] < 1e-3 for params in many)
    assert 200 < below < 300  # half of a log range


@pytest.mark.parametrize("draw", [sampling.draw, sampling.spread])
def test_of_a_finite_space_nothing_is_drawn_twice(draw: Any) -> None:
    found = list(draw(Space.parse({"a": "1..3", "b": [True, False]}), 0))
    assert len(found) == 6 == len({identity(params) for params in found})


def test_numbers_have_few_digits() -> None:
    for params, _ in zip(sampling.draw(Space.parse({"x": "log:1e-8..1"}), 1), range(100), strict=False):
        assert len(f"{params['x']:.20g}".lstrip("0.").split("e")[0].replace(".", "")) < 25
        assert float(f"{params['x']:.8g}") == params["x"]
        assert math.isfinite(params["x"])
