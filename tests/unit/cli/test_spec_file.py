"""Runs in files, with the types that people mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard import errors
from runyard.cli.input import spec_file


@pytest.fixture
def load(tmp_path: Path):
    def load(text: str | bytes, name: str = "run.yaml"):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return spec_file.load(str(path))

    return load


def test_one_run(load) -> None:
    assert load("command: [echo, hi]\nname: x\n") == ([{"command": ["echo", "hi"], "name": "x"}], False)


@pytest.mark.parametrize("text", ["- command: a\n- command: b\n", "runs:\n- command: a\n- command: b\n"])
def test_many_runs(load, text: str) -> None:
    assert load(text) == ([{"command": "a"}, {"command": "b"}], True)


def test_json(load) -> None:
    assert load('{"runs": [{"command": "a"}]}', "runs.json") == ([{"command": "a"}], True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3), ("0.1", 0.1), ("1.", 1.0), (".5", 0.5), ("-3", -3), ("010", 10), ("0x1f", 31), ("0o17", 15),
        ("1:30", "1:30"), ("1:30:00", "1:30:00"), ("on", "on"), ("yes", "yes"), ("no", "no"), ("off", "off"),
        ("true", True), ("False", False), ("null", None), ("~", None), ("", None), ("2024-01-01", "2024-01-01"),
        ("1_000", "1_000"), ("4G", "4G"), ("'3'", "3"), (".", "."), ("-", [None]),
    ],
)  # fmt: skip
def test_scalars_mean_what_yaml_1_2_says(load, text: str, value: object) -> None:
    (run,), _ = load(f"params:\n  x: {text}\n" if text != "-" else "params:\n  x:\n  -\n")
    assert run["params"]["x"] == value


def test_on_is_a_name_like_any_other(load) -> None:
    assert load("retry: {max: 2, on: [lost]}\n")[0] == [{"retry": {"max": 2, "on": ["lost"]}}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("command: [a\nname: b\n", r"run.yaml, line 2, column \d+: not YAML"),
        ("command: !!python/object/apply:os.system [ls]\n", "not YAML: could not determine a constructor"),
        ("name: a\nname: b\n", "a key is given twice"),
        ("", "contains no run"),
        ("[]", "contains no run"),
        ("just a text", "contains no run"),
        ("- 1\n- 2\n", "contains no run"),
        ("runs: [{command: a}]\nproject: x\n", "'project' beside 'runs'"),
        (b"name: \xff\xfe\n", "not UTF-8 text"),
        ("\tcommand: a\n", "not YAML"),
        ("{command: a, 1: b}", "1 is not the name of a field"),
        ("[" * 5000, "not YAML: it cannot be parsed"),
        (f"name: {'9' * 5000}", "not YAML: it cannot be parsed"),
    ],
)
def test_files_that_are_wrong_are_told_so(load, text: str | bytes, said: str) -> None:
    with pytest.raises(errors.InvalidInput, match=said):
        load(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"command": }', r"run.json: .* is not JSON: line 1, column 13"),
        ('{"command": "a", "command": "b"}', "names 'command' twice"),
        ('{"command": "a", "params": {"lr": NaN}}', "NaN is not a JSON number"),
    ],
)
def test_json_that_is_wrong(load, text: str, said: str) -> None:
    with pytest.raises(errors.InvalidInput, match=said):
        load(text, "run.json")


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidInput, match="cannot be read: no such file"):
        spec_file.load(str(tmp_path / "none.yaml"))
