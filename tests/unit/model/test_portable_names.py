"""Names for any file system: always safe, and different things have different names."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from runyard.model import portable_names

RESERVED = {"con", "prn", "aux", "nul"} | {f"{port}{number}" for port in ("com", "lpt") for number in range(10)}
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
PARAMS = st.dictionaries(
    st.text(min_size=1, max_size=8) | st.sampled_from(["lr", "LR", "a", "con"]), VALUES, max_size=4
)
ODD_NAMES = st.sampled_from(
    ["CON", "aux.txt", "aux.a.b", "a.", "a ", "A", "a", "é", "é", "x:y", "x?y", "lr=1", "default", ".."]
)
NAMES = st.text(min_size=1, max_size=40) | ODD_NAMES


def is_safe(name: str) -> bool:
    stem = name.split(".")[0].rstrip(" ").casefold()
    return (
        0 < len(name.encode()) <= 255
        and not any(character in '/:*?"<>|\\' or ord(character) < 32 for character in name)
        and not name.endswith((".", " "))
        and stem not in RESERVED
    )


def folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


@given(PARAMS, NAMES | st.just(""))
def test_a_configuration_has_a_safe_name(params: dict[str, Any], name: str) -> None:
    assert is_safe(portable_names.configuration(params, name))


@given(PARAMS, PARAMS)
def test_configurations_have_names_of_their_own(one: dict[str, Any], other: dict[str, Any]) -> None:
    assume(one and other and json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True))
    assert folded(portable_names.configuration(one, "")) != folded(portable_names.configuration(other, ""))


@given(PARAMS, NAMES)
def test_a_name_is_not_taken_for_parameters(params: dict[str, Any], name: str) -> None:
    assume(params)
    assert folded(portable_names.configuration(params, "")) != folded(portable_names.configuration({}, name))


@pytest.mark.parametrize(
    ("params", "name", "expected"),
    [
        ({"width": 64, "lr": 0.1}, "", "lr=0.1,width=64"),
        ({"lr": 1e-05, "debug": True, "seed": None}, "", "debug=true,lr=1e-05,seed=null"),
        ({"optimizer": "adam"}, "anything", "optimizer=adam"),
        ({}, "baseline", "baseline"),
        ({}, "", "default"),
    ],
)
def test_what_is_plain_is_written_as_it_is(params: dict[str, Any], name: str, expected: str) -> None:
    assert portable_names.configuration(params, name) == expected


def test_what_is_long_or_odd_stays_readable() -> None:
    long = portable_names.configuration({f"parameter_{number}": number for number in range(50)}, "")
    assert long.startswith("parameter_0=0,parameter_1=1") and len(long) <= portable_names.LONGEST
    assert portable_names.configuration({"data": "s3://x"}, "").startswith("data=s3___x@")
    assert portable_names.configuration({"n": 1}, "") != portable_names.configuration({"n": "1"}, "")


@given(st.lists(st.lists(NAMES.filter(lambda part: "/" not in part), min_size=1, max_size=3), max_size=8))
def test_files_keep_apart_wherever_they_are_written(parts: list[list[str]]) -> None:
    paths = {"/".join(path) for path in parts}
    placed = portable_names.files(paths)
    assert all(is_safe(part) for path in placed.values() for part in path.split("/"))
    assert len({folded(path) for path in placed.values()}) == len(paths)


def test_ordinary_files_keep_their_names() -> None:
    paths = ["model.pt", "metrics/loss.csv", "größe.txt", "a b.txt", ".hidden"]
    assert portable_names.files(paths) == {path: path for path in paths}


def test_the_ending_of_a_file_stays() -> None:
    placed = portable_names.files(["12:30.csv", "Loss.csv", "loss.csv"])
    assert placed["Loss.csv"] == "Loss.csv"
    assert placed["12:30.csv"].startswith("12_30@") and placed["loss.csv"].startswith("loss@")
    assert all(path.endswith(".csv") for path in placed.values())
