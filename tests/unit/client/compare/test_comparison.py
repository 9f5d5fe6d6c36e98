"""Two runs beside each other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runyard.client.compare import Comparison, Side, compare
from runyard.client.compare.differences import DifferenceKind
from runyard.model.tree import Tree, TreeFile, TreeLink
from tests.unit.client.test_fetch import digest

FILES: dict[str, bytes] = {}
SPEC = {
    "command": ["python", "train.py", "--lr", "{lr}"], "params": {"lr": 0.1, "model": {"depth": 3}},
    "env": {"MODE": "fast", "API_TOKEN": "s3cret"}, "seed": 1, "origin": {"host": "a", "env": {"PATH": "/bin"}},
    "data": [{"tree": digest(b"data"), "to": "corpora"}], "outputs": ["*.npz"],
    "code": {"tree": digest(b"code"), "files": 1, "size": 3, "git": None},
}  # fmt: skip
RUN = {
    "id": 42, "state": "succeeded", "reason": None, "exit_code": 0, "owner": "ada", "recipe": None, "site": "local",
    "node": "n1", "granted": {"cpus": 1, "memory": None, "gpus": []}, "resources": {"cpus": 1}, "wall_time": 1.5,
    "cpu_time": 1.0, "peak_memory": 1000, "attempt": 1, "spec": SPEC,
}  # fmt: skip


def tree(**texts: bytes) -> Tree:
    FILES.update({digest(data): data for data in texts.values()})
    return Tree.build(TreeFile(f"{name}.py", digest(data), len(data), False) for name, data in texts.items())


def side(run: dict[str, Any] | None = None, spec: dict[str, Any] | None = None, **facts: Any) -> Side:
    """With `None` a field of the spec is left out."""
    whole = {name: value for name, value in {**SPEC, **(spec or {})}.items() if value is not None}
    return Side(run={**RUN, **(run or {}), "spec": whole}, **facts)


def beside(one: Side, two: Side) -> Comparison:
    return compare(one, two, FILES.get)


def told(comparison: Comparison) -> dict[str, Any]:
    return {one["name"]: one["differences"] for one in comparison.to_json()["sections"]}


def test_the_same_run_twice_differs_in_nothing_but_effort() -> None:
    code = tree(train=b"x\n")
    first = side(code=code, packages={"numpy": "2"}, metrics={"loss": 0.5}, outputs={"a": "1"})
    second = side({"id": 57, "wall_time": 1.6}, code=code, packages={"numpy": "2"}, metrics={"loss": 0.5},
                  outputs={"a": "1"})  # fmt: skip
    comparison = beside(first, second)
    assert comparison.same(DifferenceKind.ASKED, DifferenceKind.RESULT, DifferenceKind.PLACE, DifferenceKind.LABEL)
    assert told(comparison) == {"effort": [{"name": "wall_time", "before": 1.5, "after": 1.6}]}
    assert comparison.to_json()["same"] == {"asked": True, "results": True}


@pytest.mark.parametrize(
    ("spec", "section", "difference"),
    [
        ({"params": {"lr": 0.2, "model": {"depth": 3}}}, "parameters", {"name": "lr", "before": 0.1, "after": 0.2}),
        ({"params": {"lr": 0.1, "model": {}}}, "parameters", {"name": "model.depth", "before": 3}),
        ({"command": ["true"]}, "command", {"name": "command", "before": SPEC["command"], "after": ["true"]}),
        ({"seed": None}, "seed", {"name": "seed", "before": 1}),
        ({"env": {**SPEC["env"], "MODE": "slow"}}, "environment", {"name": "MODE", "before": "fast", "after": "slow"}),
        ({"data": None}, "data", {"name": "corpora", "before": digest(b"data")}),
        ({"inputs": [{"url": "https://x/y", "to": "y"}]}, "data", {"name": "y", "after": "https://x/y"}),
        ({"site": "cluster"}, "wanted place", {"name": "site", "after": "cluster"}),
        ({"outputs": ["*"]}, "settings", {"name": "outputs", "before": ["*.npz"], "after": ["*"]}),
        ({"python_env": "none"}, "python", {"name": "use", "before": "record", "after": "none"}),
    ],
)
def test_what_was_asked_for_is_compared(spec: dict[str, Any], section: str, difference: dict[str, Any]) -> None:
    comparison = beside(side(), side(spec=spec))
    assert difference in told(comparison)[section]
    assert not comparison.same(DifferenceKind.ASKED)


def test_other_names_make_no_other_experiment() -> None:
    git = {"head": "abc", "branch": "main", "remote": None, "dirty": False, "diff": None}
    code = tree(train=b"x\n")
    one = {"code": {"tree": code.digest, "files": 1, "size": 2, "git": git}, "name": "one", "array": {"index": 3}}
    two = {**one, "code": {**one["code"], "git": {**git, "head": "def"}}, "name": "two", "tags": ["t"],
           "array": {"index": 3, "offset": 2, "count": 9}}  # fmt: skip
    comparison = beside(side(spec=one, code=code), side({"owner": "bob"}, two, code=code))
    assert comparison.same(DifferenceKind.ASKED)
    assert set(told(comparison)) == {"names", "git"}


def test_secrets_are_told_to_differ_and_no_more() -> None:
    other = {
        "env": {**SPEC["env"], "API_TOKEN": "0ther"},
        "origin": {"host": "a", "env": {"PATH": "/bin", "MY_PASSWORD": "p4ss"}},
    }
    comparison = beside(side(), side(spec=other))
    text = json.dumps(comparison.to_json())
    assert "API_TOKEN" in text and "MY_PASSWORD" in text
    assert not any(secret in text for secret in ("s3cret", "0ther", "p4ss"))
    assert {"name": "MY_PASSWORD", "after": "(not shown)"} in told(comparison)["submitted from"]


def test_lines_of_the_code_are_compared() -> None:
    before, after = tree(train=b"a\nb\n", gone=b"x\n", same=b"s\n"), tree(train=b"a\nc\n", new=b"y\n", same=b"s\n")
    one = {"code": {"tree": before.digest, "files": 3, "size": 8, "git": None}}
    two = {"code": {"tree": after.digest, "files": 3, "size": 8, "git": None}}
    comparison = beside(side(spec=one, code=before), side(spec=two, code=after))
    changes = {change.path: change for change in comparison.files}
    assert {path: change.change for path, change in changes.items()} == {
        "gone.py": "removed", "new.py": "added", "train.py": "changed",
    }  # fmt: skip
    assert changes["train.py"].diff == "--- a/train.py\n+++ b/train.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c"
    assert changes["new.py"].diff.startswith("--- /dev/null\n+++ b/new.py")
    assert not comparison.same(DifferenceKind.ASKED)


def test_what_is_no_text_or_gone_is_only_named() -> None:
    before, after = tree(a=b"\0\1", b=b"\xff\xfe", c=b"text"), tree(a=b"\0\2", b=b"\xff\xfd", c=b"other")
    del FILES[digest(b"other")]
    comparison = beside(side(code=before), side(code=after))
    assert [(change.path, change.diff) for change in comparison.files] == [
        ("a.py", None),
        ("b.py", None),
        ("c.py", None),
    ]


def test_scripts_and_links_are_compared_as_texts() -> None:
    before = Tree.build([TreeFile("a", digest(b""), 0, False)], [TreeLink("l", "a")])
    comparison = beside(side(spec={"script": "echo 1\n"}, code=before), side(spec={"script": "echo 2\n", "code": None}))
    assert [(change.path, change.change) for change in comparison.files] == [
        ("script", "changed"), ("a", "removed"), ("l", "removed"),
    ]  # fmt: skip
    assert comparison.files[0].diff.endswith("-echo 1\n+echo 2")


def test_code_that_is_gone_is_not_taken_for_empty() -> None:
    code = {"code": {"tree": digest(b"t"), "files": 1, "size": 1, "git": None}}
    comparison = beside(side(spec=code, notes=("it is gone",)), side(code=tree(train=b"x\n")))
    assert comparison.files == ()
    assert comparison.notes == ("it is gone",)


def test_packages_are_compared_where_both_are_known() -> None:
    one, two = side(packages={"numpy": "1.26", "scipy": "1"}), side(packages={"numpy": "2.0", "scipy": "1"})
    assert told(beside(one, two))["packages"] == [{"name": "numpy", "before": "1.26", "after": "2.0"}]
    assert "packages" not in told(beside(one, side()))


def test_results_are_compared() -> None:
    one = side(metrics={"loss": 0.5, "bad": float("nan")}, outputs={"model.npz": digest(b"1"), "log": digest(b"l")})
    two = side({"state": "failed", "reason": "error", "exit_code": 1}, metrics={"loss": 0.4, "bad": float("nan")},
               outputs={"model.npz": digest(b"2"), "log": digest(b"l")})  # fmt: skip
    comparison = beside(one, two)
    found = told(comparison)
    assert [item["name"] for item in found["ending"]] == ["state", "exit_code", "reason"]
    assert found["metrics"] == [{"name": "loss", "before": 0.5, "after": 0.4}]
    assert [item["name"] for item in found["outputs"]] == ["model.npz"]
    assert comparison.same(DifferenceKind.ASKED) and not comparison.same(DifferenceKind.RESULT)


@pytest.mark.parametrize(
    ("first", "second", "asked", "note"),
    [
        (None, None, None, "runs 42 and 57 have no snapshot of the code"),
        (SPEC["code"], None, False, "run 57 has no snapshot of the code"),
        (None, SPEC["code"], False, "run 42 has no snapshot of the code"),
        (SPEC["code"], SPEC["code"], True, ""),
    ],
)
def test_code_that_nobody_kept_is_not_known_to_be_the_same(first: Any, second: Any, asked: Any, note: str) -> None:
    shown = beside(side(spec={"code": first}), side({"id": 57}, {"code": second})).to_json()
    assert shown["same"]["asked"] is asked
    assert [text.partition(":")[0] for text in shown["notes"]] == [note] * bool(note)


def test_of_runs_that_go_on_nothing_is_said_about_results() -> None:
    assert beside(side(), side({"state": "running"})).to_json()["same"] == {"asked": True, "results": None}
