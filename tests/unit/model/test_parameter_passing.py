"""Parameters in the words of argparse, Hydra, JSON and the environment."""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

import pytest

from runyard import errors
from runyard.model import parameter_passing
from runyard.model.spec import RunSpec

PARAMS = {
    "lr": 1e-05,
    "name": "a b",
    "layers": [64, 128],
    "model": {"depth": 2},
    "fast": True,
    "slow": False,
    "x": None,
}


def words(way: str, command: list[str] | str = "", params: dict[str, Any] | None = None) -> list[str]:
    spec = {"command": command or ["train"], "params": PARAMS if params is None else params, "params_as": way}
    return RunSpec.parse(spec).argv()[1 if isinstance(spec["command"], list) else 2 :]


def test_flags_are_what_argparse_reads() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float)
    parser.add_argument("--name")
    parser.add_argument("--layers", type=int, nargs="+")
    parser.add_argument("--model.depth", type=int)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--x")
    assert vars(parser.parse_args(words("flags"))) == {
        "lr": 1e-05, "name": "a b", "layers": [64, 128], "model.depth": 2, "fast": True, "slow": False, "x": None,
    }  # fmt: skip


def test_a_value_that_begins_like_a_flag_stays_a_value() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--name")
    parser.add_argument("--lr", type=float)
    read = parser.parse_args(words("flags", params={"name": "--evil", "lr": -0.5}))
    assert (read.name, read.lr) == ("--evil", -0.5)


def test_hydra_gets_overrides() -> None:
    assert words("hydra") == [
        "lr=1e-05", "name='a b'", "layers=[64,128]", "model.depth=2", "fast=true", "slow=false", "x=null",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("adam", "adam"), ("data/train.csv", "data/train.csv"), ("true", "'true'"), ("NULL", "'NULL'"),
        ("1e-5", "'1e-5'"),
        ("", "''"), ("it's", r"'it\'s'"), ("end\\", "'end\\\\'"), ("a\\'b", "'a\\\\\\'b'"), ("a\\b c", "'a\\b c'"),
        (["a", {"k": "v w"}], "[a,{k:'v w'}]"), (math.nan, "nan"), (-math.inf, "-inf"), ({}, "{}"), (True, "true"),
    ],
)  # fmt: skip
def test_hydra_would_read_the_same_value(value: Any, written: str) -> None:
    assert words("hydra", params={"k": value}) == [f"k={written}"]


def test_json_is_one_argument_with_everything() -> None:
    (text,) = words("json", ["{name}"], {"name": "train", "lr": 0.1})
    assert json.loads(text) == {"name": "train", "lr": 0.1}
    assert words("json", params={}) == ["{}"]


def test_what_the_command_names_is_not_said_twice() -> None:
    given = ["train-{name}", "{model}"]
    assert words("flags", given, {"name": "x", "model": {"depth": 2}, "lr": 1}) == ['{"depth": 2}', "--lr", "1"]


def test_a_text_for_the_shell_gets_quoted_words() -> None:
    assert words("flags", "exec train", {"name": "a b"}) == ["exec train --name 'a b'"]


def test_variables_have_a_prefix() -> None:
    given = {"lr": 0.1, "path": "/x", "model": {"depth": 2}, "odd-name": "é", "none": None, "empty": "", "fast": False}
    assert parameter_passing.variables(given) == {
        "PARAM_LR": "0.1", "PARAM_PATH": "/x", "PARAM_MODEL_DEPTH": "2", "PARAM_ODD_NAME": "é", "PARAM_EMPTY": "",
        "PARAM_FAST": "false",
    }  # fmt: skip
    assert words("env") == []


def test_variables_that_would_be_one_are_refused() -> None:
    with pytest.raises(errors.InvalidInput, match="PARAM_A_B"):
        RunSpec.parse({"command": "x", "params_as": "env", "params": {"a.b": 1, "a-b": 2}})


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(errors.InvalidInput, match="params_as"):
        RunSpec.parse({"command": "x", "params_as": "yaml"})
