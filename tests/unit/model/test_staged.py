"""Code and data in a spec."""

from __future__ import annotations

from typing import Any

import pytest

from runyard import errors
from runyard.model.spec import RunSpec
from runyard.model.staged import Code, Data

TREE = "sha256:" + "ab" * 32
GIT = {"head": "0" * 40, "branch": "main", "remote": "https://host/x.git", "dirty": True, "diff": TREE}


def parse(**fields: Any) -> RunSpec:
    return RunSpec.parse({"command": "true", **fields})


def test_code_and_data_come_back_as_they_were_given() -> None:
    code = {"tree": TREE, "files": 3, "size": 12, "git": GIT}
    data = [{"tree": TREE, "to": "corpora"}, {"path": "/scratch/mnist", "to": "sets/mnist"}]
    spec = parse(code=code, data=data)
    assert spec.to_json() == {"command": "true", "code": code, "data": data}
    assert RunSpec.parse(spec.to_json()) == spec
    assert spec.data[1] == Data(to="sets/mnist", path="/scratch/mnist")


def test_code_without_git() -> None:
    assert parse(code={"tree": TREE, "files": 0, "size": 0}).code == Code(tree=TREE, files=0, size=0)


def test_without_code_nothing_is_said() -> None:
    assert parse(code=None, data=None).to_json() == {"command": "true"}


@pytest.mark.parametrize(
    "code",
    [
        ".",
        {},
        {"tree": "x", "files": 1, "size": 1},
        {"tree": TREE, "files": -1, "size": 1},
        {"tree": TREE},
        {"tree": TREE, "files": 1, "size": 1, "git": "main"},
        {"tree": TREE, "files": 1, "size": 1, "git": {"diff": "x"}},
        {"tree": TREE, "files": 1, "size": 1, "git": {"dirty": 1}},
        {"tree": TREE, "files": 1, "size": 1, "more": 1},
    ],
)
def test_bad_code_is_refused(code: Any) -> None:
    with pytest.raises(errors.InvalidInput, match=r"^code"):
        parse(code=code)


@pytest.mark.parametrize(
    "data",
    [
        "corpora",
        {"to": "x"},
        [{"to": "x"}],
        [{"to": "x", "tree": TREE, "path": "/x"}],
        [{"to": "../x", "tree": TREE}],
        [{"to": "/x", "tree": TREE}],
        [{"to": "x", "path": "relative"}],
        [{"to": "a\nb", "tree": TREE}],
        [{"tree": TREE}],
        [{"to": "x", "tree": TREE}, {"to": "x", "path": "/x"}],
        [{"to": "x", "tree": TREE}, {"to": "x/y", "tree": TREE}],
        [{"to": f"d{number}", "tree": TREE} for number in range(101)],
    ],
)
def test_bad_data_is_refused(data: Any) -> None:
    with pytest.raises(errors.InvalidInput, match=r"^data"):
        parse(data=data)
