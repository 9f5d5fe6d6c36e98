"""All configurations of a Ludwig request: the order, the checks, and the values that can be sent."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard import errors
from runyard.bridges.ludwig import gen_all_param2vals, values
from runyard.bridges.ludwig.node import worker

DEFAULT = {"size": 4, "rate": 0.1, "layers": (8, 4)}


@st.composite
def requests(draw: st.DrawFn) -> tuple[dict[str, list[int]], dict[str, int]]:
    names = draw(st.lists(st.text("abcdef", min_size=1, max_size=3), unique=True, min_size=1, max_size=4))
    chosen = draw(st.lists(st.sampled_from(names), unique=True))
    lists = st.lists(st.integers(), unique=True, min_size=1, max_size=4)
    return {name: draw(lists) for name in chosen}, {name: draw(st.integers()) for name in names}


@given(requests())
def test_the_first_name_is_the_fastest(asked: tuple[dict[str, list[int]], dict[str, int]]) -> None:
    """By the old rule: each name counts through its values, and moves the next name on when it begins again."""
    requested, default = asked
    full = {name: requested.get(name, [value]) for name, value in default.items()}
    expected = []
    for number in range(math.prod(map(len, full.values()))):
        configuration = {}
        for name, choices in full.items():
            number, index = divmod(number, len(choices))
            configuration[name] = choices[index]
        expected.append(configuration)
    found = gen_all_param2vals(requested, default)
    assert found == expected
    assert [list(configuration) for configuration in found] == [list(default)] * len(found)


@pytest.mark.parametrize(
    ("requested", "default", "message"),
    [
        ({"size": 4}, DEFAULT, "param2requests['size']: it is no list"),
        ({"size": (4, 5)}, DEFAULT, "param2requests['size']: it is no list"),
        ({"size": []}, DEFAULT, "param2requests['size']: the list is empty"),
        ({"size": [1, 2, 1]}, DEFAULT, "param2requests['size']: a value is there twice"),
        ({"layers": [[8, 4]]}, DEFAULT, "param2requests['layers']: there is a list or a dict in it"),
        ({"sise": [1]}, DEFAULT, "param2requests['sise']: param2default does not have it"),
        ({}, {"layers": [8, 4]}, "param2default['layers']: it is a list"),
        ({name: list(range(400)) for name in "ab"}, dict.fromkeys("ab", 0), "param2requests: 160,000 configurations"),
    ],
)
def test_what_is_wrong_is_told(requested: dict[str, Any], default: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        gen_all_param2vals(requested, default)
    assert caught.value.message.startswith(message)
    assert caught.value.fix


plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
nested = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=5).filter(lambda name: name not in values.ADDED), nested, max_size=4))
def test_a_job_gets_the_very_values(configuration: dict[str, Any]) -> None:
    sent = json.dumps(values.encode(values.clean(configuration, "it")))
    found = worker.decode(json.loads(sent))
    assert found == configuration
    assert repr(found) == repr(configuration), "a tuple is no list, and 1 is not 1.0"


def test_numbers_of_numpy_are_numbers() -> None:
    given = {
        "a": numpy.int64(3),
        "b": numpy.float32(0.5),
        "c": numpy.float64(0.1),
        "d": numpy.bool_(True),
        "e": (numpy.str_("x"),),
    }
    found = values.clean(given, "it")
    assert found == {"a": 3, "b": 0.5, "c": 0.1, "d": True, "e": ("x",)}
    assert [type(value) for value in found.values()] == [int, float, float, bool, tuple]


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", lambda: 1])
def test_what_cannot_be_sent_is_told(value: object) -> None:
    with pytest.raises(errors.InvalidInput, match=r"it\['x'\]: an? \w+ cannot be sent"):
        values.clean({"x": (1, value)}, "it")


def test_equal_configurations_are_recognised() -> None:
    assert values.identity({"a": (1, 2), "b": 1}) == values.identity({"b": 1.0, "a": [1, 2]})
    assert values.identity({"a": float("nan")}) == values.identity({"a": float("nan")})
    assert values.identity({"a": 1}) != values.identity({"a": "1"})
