"""The spec of a run that is started again."""

from __future__ import annotations

from typing import Any

import pytest

from runyard import errors
from runyard.model.rerun import Changes, notes
from runyard.model.spec import RunSpec

DIGEST = f"sha256:{'a' * 64}"
FIRST = {
    "command": ["train", "--lr", "{lr}", "--depth", "{model.depth}"],
    "params": {"lr": 0.1, "model": {"depth": 3, "width": 8}, "a.b": 1},
    "env": {"TOKEN": "secret"}, "seed": 5, "resources": {"cpus": 2, "memory": "1G"}, "site": "boxes",
    "code": {"tree": DIGEST, "files": 1, "size": 3}, "data": [{"tree": DIGEST, "to": "corpora"}],
    "tags": ["probe"], "name": "first", "idempotency_key": "once", "origin": {"host": "h", "env": {"PATH": "/bin"}},
}  # fmt: skip


def again(changes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    spec = RunSpec.parse({**FIRST, **fields})
    return Changes.parse(changes or {}).apply(42, spec).to_json()


def test_it_has_all_of_the_first_and_says_where_it_comes_from() -> None:
    first = RunSpec.parse(FIRST).to_json()
    made = again()
    assert made.pop("origin") == {"host": "h", "env": {"PATH": "/bin"}, "run": 42}
    assert made == {name: value for name, value in first.items() if name not in ("origin", "idempotency_key")}


def test_what_it_says_can_be_read_again() -> None:
    assert RunSpec.parse(again()).to_json() == again()
    assert again(origin={})["origin"] == {"host": "", "env": {}, "run": 42}


def test_the_origin_is_the_run_that_was_named_not_the_first_of_all() -> None:
    assert again(origin={"run": 7})["origin"]["run"] == 42


def test_parameters_seed_and_site_can_be_others() -> None:
    made = again({"params": {"lr": 0.2, "model.depth": 4, "a.b": 2}, "seed": 0, "site": "cluster"})
    assert made["params"] == {"lr": 0.2, "model": {"depth": 4, "width": 8}, "a.b": 2}
    assert (made["seed"], made["site"]) == (0, "cluster")


def test_the_first_spec_stays_as_it_is() -> None:
    spec = RunSpec.parse(FIRST)
    Changes.parse({"params": {"model.depth": 4}}).apply(42, spec)
    assert spec.params["model"]["depth"] == 3


@pytest.mark.parametrize(
    ("changes", "message", "fix"),
    [
        ({"params": {"lrr": 1}}, "run 42 has no parameter 'lrr'", "did you mean 'lr'?"),
        ({"params": {"model.dept": 1}}, "run 42 has no parameter 'model.dept'", "'model.depth'"),
        ({"params": {"lr.x": 1}}, "run 42 has no parameter 'lr.x'", "did you mean 'lr'?"),
        ({"params": {"epochs": 1}}, "run 42 has no parameter 'epochs'", "known: a.b, lr, model.depth, model.width"),
        ({"seed": -1}, "seed: -1 is not between", ""),
        ({"params": [1]}, "params: must be a mapping", ""),
        ({"python_env": "none"}, "python_env: 'none' is not known", "sync"),
        ({"command": "rm"}, "rerun: unknown field 'command'", ""),
    ],
)
def test_bad_changes_are_refused(changes: dict[str, Any], message: str, fix: str) -> None:
    with pytest.raises(errors.InvalidInput) as refused:
        again(changes)
    assert message in refused.value.message
    assert fix in refused.value.fix


def test_a_run_without_parameters_says_so() -> None:
    with pytest.raises(errors.InvalidInput, match="no parameter 'lr'"):
        again({"params": {"lr": 1}}, command=["true"], params={})


def test_a_task_of_an_array_keeps_its_number_and_not_its_neighbours() -> None:
    """Its own id tells nothing of theirs any more, so nothing may be counted from it."""
    array = {"index": 7, "first": 1, "last": 9, "offset": 6, "count": 9, "limit": 2}
    assert again(array=array)["array"] == {"index": 7, "first": 1, "last": 9, "step": 1, "offset": 0, "count": 1}


RECORDED = {"python": "3.11.7", "prefix": "/venv", "packages": 2, "freeze": DIGEST, "conda": None, "notes": []}


def test_a_recorded_environment_can_be_built() -> None:
    made = again({"python_env": "sync"}, python_env={"use": "record", "record": RECORDED})
    assert made["python_env"] == {
        "use": "sync", "file": DIGEST, "kind": "pip", "name": "lock", "python": "3.11", "record": RECORDED
    }  # fmt: skip


def test_an_environment_that_was_built_is_built_again() -> None:
    built = {"use": "file", "file": DIGEST, "kind": "conda", "name": "environment.yml", "python": ""}
    assert again({"python_env": "sync"}, python_env=built)["python_env"] == built


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (None, "none was recorded"),
        ({**RECORDED, "freeze": None}, "none was recorded"),
        ({**RECORDED, "conda": DIGEST}, "a conda environment"),
        ({**RECORDED, "notes": ["nets==0.1 was installed from /home/ada/nets"]}, "nets==0.1 was installed from"),
    ],
)
def test_an_environment_that_cannot_be_built_is_told(record: Any, why: str) -> None:
    with pytest.raises(errors.Conflict) as refused:
        again({"python_env": "sync"}, python_env={"use": "record", "record": record})
    assert why in refused.value.message


SITES = "uses the packages currently installed at the site"


def told(**fields: Any) -> list[str]:
    return notes(RunSpec.parse({**FIRST, "python_env": {"use": "sync", "file": DIGEST}, **fields}))


def test_nothing_is_told_of_a_run_whose_parts_are_all_kept() -> None:
    assert told() == []


@pytest.mark.parametrize(
    ("cwd", "used"), [("/home/ada/nets", "/home/ada/nets is used as it is now"), (None, "the files of its command are")]
)
def test_code_without_a_snapshot_is_told(cwd: str | None, used: str) -> None:
    (note,) = told(code=None, cwd=cwd)
    assert note.startswith(f"it has no snapshot of its code: {used}")
    assert "--code ." in note


@pytest.mark.parametrize(
    ("python_env", "note"),
    [
        ({"use": "record", "record": RECORDED}, f"{SITES} (--python-env sync builds the recorded ones)"),
        ("record", f"{SITES} (its own cannot be built: none was recorded)"),
        ("none", f"{SITES} (its own cannot be built: none was recorded)"),
        ({"use": "record", "record": {**RECORDED, "notes": ["n is from /x"]}},
         f"{SITES} (its own cannot be built: n is from /x)"),
        ("conda:nets", "uses the conda environment nets of the site as it is now"),
    ],
)  # fmt: skip
def test_an_environment_that_is_not_built_is_told(python_env: Any, note: str) -> None:
    assert told(python_env=python_env) == [note]


def test_data_without_a_digest_is_told_and_no_key_in_its_address() -> None:
    inputs = [{"url": "https://data.example/w.csv?key=1", "to": "w"}]
    (note,) = told(data=[{"path": "/scratch/mnist", "to": "mnist"}], inputs=inputs)
    assert note == "the yard keeps no digest of /scratch/mnist, https://data.example/w.csv: used as it is now"
