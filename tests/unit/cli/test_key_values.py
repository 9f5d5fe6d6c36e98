"""`--param` and `--env`."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard import errors
from runyard.cli.input import key_values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", 0.1), ("1e-3", 1e-3), ("3", 3), ("true", True), ("null", None), ("[1, 2]", [1, 2]),
        ('"3"', "3"), ("resnet", "resnet"), ("", ""), ("007", "007"), ("NaN", "NaN"), ("-Infinity", "-Infinity"),
        ('{"a": 1}', {"a": 1}), ("a=b", "a=b"), ("True", "True"), ("ünï", "ünï"),
    ],
)  # fmt: skip
def test_a_value_is_json_or_else_a_text(text: str, value: object) -> None:
    assert key_values.parameters([f"k={text}"], {}) == {"k": value}


def test_dotted_names_nest_and_join_what_is_there() -> None:
    known = {"model": {"depth": 2, "width": 8}, "lr": 1}
    assert key_values.parameters(["model.depth=3", "opt.name=adam"], known) == {
        "model": {"depth": 3, "width": 8},
        "lr": 1,
        "opt": {"name": "adam"},
    }
    assert known["model"] == {"depth": 2, "width": 8}


@pytest.mark.parametrize("word", ["lr", "=1", ""])
def test_what_is_not_a_parameter(word: str) -> None:
    with pytest.raises(errors.InvalidInput, match="is not a parameter"):
        key_values.parameters([word], {})


def test_a_value_is_not_a_group() -> None:
    with pytest.raises(errors.InvalidInput, match=r"'a' in 'a\.b' already has a value"):
        key_values.parameters(["a=1", "a.b=2"], {})


def test_variables_are_set_or_passed_on() -> None:
    given = key_values.variables(["A=1", "B=x=y", "C=", "MINE"], {"MINE": "from here"})
    assert given == {"A": "1", "B": "x=y", "C": "", "MINE": "from here"}


def test_a_variable_that_is_not_set_here() -> None:
    with pytest.raises(errors.InvalidInput, match="MINE is not set here") as caught:
        key_values.variables(["MINE"], {})
    assert caught.value.fix == "write MINE=VALUE"


def test_a_file_of_variables(tmp_path: Path) -> None:
    path = tmp_path / "env"
    path.write_text(
        "# a comment\n\nA=1\nexport B=two words # and a comment\nC='single $A \\n'\n"
        'D="double \\"quoted\\"\\n"\nE=\n  F = spaced\nG=a#b\n'
    )
    assert key_values.variables_from_file(str(path)) == {
        "A": "1",
        "B": "two words",
        "C": "single $A \\n",
        "D": 'double "quoted"\n',
        "E": "",
        "F": "spaced",
        "G": "a#b",
    }


def test_a_line_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "env"
    path.write_text("A=1\nnonsense\n")
    with pytest.raises(errors.InvalidInput, match="line 2: 'nonsense' is not KEY=VALUE"):
        key_values.variables_from_file(str(path))


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidInput, match="cannot be read: no such file"):
        key_values.variables_from_file(str(tmp_path / "none"))
