from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard import errors
from runyard.model import output_file
from runyard.model.command import argv_of
from runyard.model.resources import Capacity, Gpu, Resources
from runyard.model.spec import RunSpec


def test_a_spec_reads_back_as_itself() -> None:
    given_fields: dict[str, Any] = {
        "command": ["python", "train.py", "--lr", "{lr}"],
        "params": {"lr": 0.1, "model": {"width": 3}},
        "project": "digits",
        "name": "probe",
        "env": {"A": "b c\n"},
        "cwd": "/tmp",
        "seed": 7,
        "outputs": ["*.npz"],
        "metrics": {"stdout": [r"loss=(?P<loss>\S+)"]},
        "split_output": True,
        "resources": {"cpus": 2, "memory": "4G", "gpus": 1, "gpu_type": "a100", "time": "2h"},
        "site": "local",
        "priority": 3,
        "after": [1, 2],
        "retry": {"max": 2, "on": ["oom"]},
        "stop": {"signal": "SIGUSR1", "grace": "1m"},
        "tags": ["a", "b"],
        "idempotency_key": "k",
        "origin": {"host": "h", "env": {"PATH": "/bin"}},
    }
    spec = RunSpec.parse(given_fields)
    assert spec.resources.memory == 4 << 30
    assert spec.stop.signal == "USR1"
    again = RunSpec.parse(json.loads(json.dumps(spec.to_json())))
    assert again == spec


def test_a_checkpoint_may_be_just_true() -> None:
    spec = RunSpec.parse({"command": "x", "checkpoint": True})
    assert spec.to_json()["checkpoint"] == {"signal": "USR1", "grace": 60, "max_attempts": 100}
    assert RunSpec.parse(spec.to_json()) == spec
    assert RunSpec.parse({"command": "x", "checkpoint": False}).checkpoint is None
    assert RunSpec.parse({"command": "x", "stop": {}}).stop == RunSpec.parse({"command": "x"}).stop


def test_defaults_are_not_written_down() -> None:
    assert RunSpec.parse({"command": ["true"], "priority": 0, "project": "default"}).to_json() == {"command": ["true"]}


@pytest.mark.parametrize(
    ("fields", "sentence", "fix"),
    [
        ({}, "run: no command", "give a command"),
        ({"command": []}, "run: no command", ""),
        ({"command": [""]}, "first word is empty", ""),
        ({"command": [1]}, "command[0]: must be a text", ""),
        ({"command": "x", "comand": 1}, "unknown field 'comand'", "did you mean 'command'?"),
        ({"command": "x", "resources": {"cpu": 1}}, "unknown field 'cpu'", "did you mean 'cpus'?"),
        ({"command": "x", "resources": {"cpus": -1}}, "resources.cpus: -1 is not between", ""),
        ({"command": "x", "resources": {"nodes": 0}}, "resources.nodes: 0 is not between", ""),
        ({"command": "x", "resources": {"cpus": 10**9}}, "resources.cpus: 1000000000 is not between", ""),
        ({"command": "x", "resources": {"cpus": 1.5}}, "resources.cpus: 1.5 is not a whole number", ""),
        ({"command": "x", "resources": {"cpus": True}}, "is not a whole number", ""),
        (
            {"command": "x", "resources": {"memory": "lots"}},
            "resources.memory: 'lots' is not a size",
            "write it like 4G",
        ),
        ({"command": "x", "resources": {"memory": "9999999P"}}, "resources.memory:", ""),
        ({"command": "x", "resources": {"time": "-2h"}}, "resources.time:", ""),
        ({"command": "x", "resources": [1]}, "resources: must be a mapping", ""),
        ({"command": "x", "project": "../etc"}, "project: '../etc' is not a valid name", ""),
        ({"command": "x", "project": "a/b"}, "project:", ""),
        ({"command": "x", "env": {"A=B": "c"}}, "env: 'A=B' is not a variable name", ""),
        ({"command": "x", "env": {"A": 1}}, "env.A: must be a text", ""),
        ({"command": "x\0y"}, "contains a zero byte", ""),
        ({"command": "x", "cwd": "relative"}, "is not an absolute path", "start it with /"),
        ({"command": "x", "outputs": ["../../etc/*"]}, "leads out of the output directory", ""),
        ({"command": "x", "outputs": [""]}, "outputs: a pattern is empty", "such as '*.csv'"),
        ({"command": "x", "after": ["one"]}, "after: 'one' is not a whole number", ""),
        ({"command": "x", "retry": {"max": 1, "on": ["luck"]}}, "retry.on: 'luck' is not known", ""),
        ({"command": "x", "retry": {"on": 5}}, "retry.on: must be a list", ""),
        ({"command": "x", "name": "a\udcff"}, "name: must be valid Unicode", ""),
        ({"command": "x", "idempotency_key": "\ud800"}, "idempotency_key: must be valid Unicode", ""),
        ({"command": "x", "stop": {"signal": "KILL"}}, "stop.signal: 'KILL' is not known", ""),
        ({"command": "x", "tags": ["a b"]}, "tags: 'a b' is not a valid name", ""),
        ({"command": "x", "params": {"a": object()}}, "params:", ""),
        ({"command": "x", "seed": -1}, "seed:", ""),
        ([], "run: must be a mapping", ""),
        (None, "run: must be a mapping", ""),
    ],
)
def test_bad_input_gets_one_sentence(fields: object, sentence: str, fix: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        RunSpec.parse(fields)
    assert sentence in caught.value.message
    assert fix in caught.value.fix


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["command", "params", "env", "resources", "retry", "stop", "after", "tags", "outputs", "site", "x"]
)


@given(st.dictionaries(FIELDS, JSON, max_size=5))
def test_anything_is_read_or_refused(fields: dict[str, Any]) -> None:
    try:
        RunSpec.parse(fields)
    except errors.InvalidInput as error:
        assert error.message


def filled(command: list[str] | str, params: dict[str, Any] | None = None, **fields: Any) -> list[str]:
    return argv_of({"command": command, "params": params or {}, **fields})


def test_braces_stay_in_a_run_without_parameters() -> None:
    assert filled(["awk", "{print $1}"]) == ["awk", "{print $1}"]
    assert filled("echo ${HOME} {x}") == ["/bin/sh", "-c", "echo ${HOME} {x}"]


def test_parameters_are_filled_in() -> None:
    params = {"lr": 0.1, "name": "a b", "model": {"lr": 1e-5}, "flag": True, "a.b": "dotted"}
    words = ["--lr={lr}", "{name}", "{model.lr}", "{flag}", "{{x}}", "{a.b}"]
    assert filled(words, params) == ["--lr=0.1", "a b", "1e-05", "true", "{x}", "dotted"]
    assert filled("echo {name}", params)[2] == "echo 'a b'"


def test_the_number_of_a_run_is_filled_in() -> None:
    assert filled(["--id", "{index}"], {"lr": 1}, index=7) == ["--id", "7"]
    assert filled(["--id", "{index}"], index=7) == ["--id", "7"], "a sweep of repetitions alone has no parameters"
    assert filled(["--id", "{index}"], {"lr": 1}) == ["--id", "1"]
    assert filled(["--id", "{index}"]) == ["--id", "{index}"]
    assert filled(["{index}"], {"index": "mine"}, index=7) == ["mine"]
    array = {"index": 4, "first": 0, "last": 9}
    assert filled("echo {index}", array=array)[2] == "echo 4"
    assert filled("echo {index}", array=array, dialect="slurm")[2] == "echo {index}"
    assert RunSpec.parse({"command": "x", "array": array, "dialect": "slurm"}).number == 4


@pytest.mark.parametrize("word", ["{rl}", "{model.lrr}", "{}", "{lr", "lr}", "{model.lr.x}"])
def test_an_unknown_word_offers_the_names(word: str) -> None:
    with pytest.raises(errors.InvalidInput, match="command:") as caught:
        filled([word], {"lr": 1, "model": {"lr": 2}})
    assert "brace" in caught.value.fix


def test_capacity_counts_slots() -> None:
    gpus = (Gpu(uuid="small", type="NVIDIA A100", memory=40), Gpu(uuid="big", type="NVIDIA A100", memory=80))
    place = Capacity(cpus=4, memory=100, gpus=gpus)
    assert place.shortages(Resources(cpus=4, memory=100, gpus=2)) == []
    assert place.shortages(Resources(cpus=5, memory=101, gpus=3)) == ["cpus", "memory", "gpus"]
    assert place.shortages(Resources(gpus=1, gpu_type="h100")) == ["gpus"]
    assert place.shortages(Resources(gpus=2, gpu_memory=50)) == ["gpus"]
    left = place.minus(Resources(cpus=1, memory=10, gpus=1))
    assert (left.cpus, left.memory, [gpu.uuid for gpu in left.gpus]) == (3, 90, ["big"])


def test_a_script_brings_its_program_along() -> None:
    spec = RunSpec.parse({"script": "#!/bin/sh\necho \udcff\n", "command": []})
    assert (spec.command, spec.argv()) == ([], [])
    assert RunSpec.parse(spec.to_json()) == spec
    with_arguments = RunSpec.parse({"script": "x", "command": ["", "{lr}"], "params": {"lr": 1}})
    assert with_arguments.argv() == ["", "1"]


def test_files_that_others_write_to_are_copied_from_streams_of_their_own() -> None:
    shared = {"command": "x", "stdout": "/o", "open_mode": "append"}
    assert not RunSpec.parse(shared).split_output
    assert RunSpec.parse({**shared, "stderr": "/e"}).split_output
    assert not RunSpec.parse({**shared, "stderr": "/e", "open_mode": "truncate"}).split_output


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"script": "x"}, "run: no command"),
        ({"script": "x", "command": "text"}, "command: with a script it is the list of its arguments"),
        ({"script": "", "command": []}, "script: must be a text"),
        ({"command": "x", "stdout": "relative"}, "stdout: 'relative' is not an absolute path"),
        ({"command": "x", "stdout": "/a%q"}, "stdout: '%q' is not known"),
        ({"command": "x", "stderr": "/a%5N"}, "stderr: '%5N' is not known"),
        ({"command": "x", "stdout": "/a%"}, "stdout: '%' is not known"),
        ({"command": "x", "open_mode": "w"}, "open_mode: 'w' is not known"),
        ({"command": "x", "dialect": "pbs"}, "dialect: 'pbs' is not known"),
        ({"command": "x", "array": {"index": 1}}, "array: no first"),
        ({"command": "x", "array": {"index": 9, "first": 1, "last": 8}}, "array: its numbers contradict each other"),
        ({"command": "x", "array": {"index": 1, "first": 1, "last": 8, "offset": 1}}, "array: its numbers contradict"),
        ({"command": "x", "array": {"index": 1, "first": 1, "last": 8, "limit": 0}}, "array.limit: 0 is not between"),
        ({"command": "x", "array": {"idx": 1}}, "array: unknown field 'idx'"),
        ({"command": "x", "after_any": ["one"]}, "after_any: 'one' is not a whole number"),
    ],
)
def test_what_old_scripts_need_is_checked_too(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        RunSpec.parse(fields)
    assert sentence in caught.value.message


def test_ids_in_the_names_of_files() -> None:
    assert output_file.with_ids("/%A_3-%5j.%N%%j", run=44, array=42) == "/42_3-00044.%N%%j"
