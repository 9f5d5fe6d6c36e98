"""A slice of an attempt's state belongs to one module: nobody else names it, and so nobody else writes to it."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

import runyard.agent
from runyard.agent.attempts import Attempt
from runyard.agent.slices import OWNERS

AGENT = Path(runyard.agent.__file__).parent
CORE = {"claim", "job", "fresh", "prefer_gpus"}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(AGENT.rglob("*.py")):
        name = path.relative_to(AGENT).with_suffix("").as_posix()
        yield name, ast.parse(path.read_text(encoding="utf-8"))


def slices_named(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Each `attempt.life`, also as `piece.attempt.life`: what slices belong to are always called attempts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in OWNERS and _is_attempt(node.value):
            yield node.attr, node.lineno


def _is_attempt(node: ast.expr) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name in ("attempt", "a", "member", "user")


def test_every_slice_has_an_owner_that_is_there() -> None:
    fields = {field.name for field in dataclasses.fields(Attempt)}
    assert fields - CORE == set(OWNERS)
    assert set(OWNERS.values()) <= {name for name, _ in modules()}


@pytest.mark.parametrize("name", sorted(OWNERS))
def test_only_its_owner_names_a_slice(name: str) -> None:
    readers = {"attempts", OWNERS[name]}  # the properties of an attempt read them for everybody
    others = [f"{module}:{line}" for module, tree in modules() for found, line in slices_named(tree) if found == name]
    assert not [place for place in others if place.split(":")[0] not in readers]
    assert any(place.split(":")[0] == OWNERS[name] for place in others), "its owner does not use it"


def test_only_owners_write_to_the_fields_of_slices() -> None:
    """Whatever the variable is called: a field of a slice is assigned to in the module that has the slice."""
    owners: dict[str, set[str]] = {}
    for name, kind in _slice_classes().items():
        for field in dataclasses.fields(kind):
            owners.setdefault(field.name, set()).add(OWNERS[name])
    wrong = [
        f"{module}:{target.lineno} writes .{target.attr}"
        for module, tree in modules()
        for target in _written(tree)
        if target.attr in owners and module not in owners[target.attr]
    ]
    assert not wrong


def _slice_classes() -> dict[str, type]:
    attempt = Attempt(claim=None, job=None)  # type: ignore[arg-type]
    return {name: type(getattr(attempt, name)) for name in OWNERS}


def _written(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Attributes of anything but `self` that are assigned to, also by `+=`, by an item, and by methods that change."""
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = [one for target in node.targets for one in _parts(target)]
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            targets = [node.func.value]
        for target in targets:
            inner = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(inner, ast.Attribute) and not (
                isinstance(inner.value, ast.Name) and inner.value.id == "self"
            ):
                yield inner


CHANGING = ("append", "extend", "update", "pop", "clear", "setdefault", "remove", "insert")


def _parts(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, ast.Tuple) else [target]
