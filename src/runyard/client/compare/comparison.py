"""Two runs beside each other. Nothing is fetched here: see `gather`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runyard.client.compare import files
from runyard.client.compare.differences import DifferenceKind, Section, section
from runyard.client.compare.files import FileChange, Read
from runyard.model.declaration import Diff, names
from runyard.model.spec import RunSpec
from runyard.model.states import FINAL
from runyard.model.template import flat
from runyard.model.tree import Tree

HIDDEN = "(not shown)"
_SECRET = re.compile(r"token|secret|passw|credential|private|api_?key|access_?key|auth", re.IGNORECASE)

ENDING = ("state", "reason", "exit_code")
EFFORT = ("wall_time", "cpu_time", "peak_memory", "attempt")


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """All that is known of one run."""

    run: Mapping[str, Any]  # as the yard shows it
    code: Tree | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)  # digests by path
    metrics: Mapping[str, Any] = field(default_factory=dict)  # last values, and what it reported as its summary
    notes: tuple[str, ...] = ()  # what could not be found out

    @property
    def spec(self) -> Mapping[str, Any]:
        spec: Mapping[str, Any] = self.run["spec"]
        return spec


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    runs: tuple[int, int]
    sections: tuple[Section, ...]  # those that differ
    files: tuple[FileChange, ...]  # of the code, and the script
    knows_code: bool  # both have a snapshot of it
    over: bool  # both have ended
    notes: tuple[str, ...]

    def same(self, *kinds: DifferenceKind) -> bool:
        return not any(one.kind in kinds for one in self.sections) and not (
            DifferenceKind.ASKED in kinds and self.files
        )

    @property
    def same_asked(self) -> bool | None:
        """None: nothing is known to differ, and whether the code does is not known."""
        if not self.same(DifferenceKind.ASKED):
            return False
        return True if self.knows_code else None

    def to_json(self) -> dict[str, Any]:
        return {
            "runs": list(self.runs),
            "same": {"asked": self.same_asked, "results": self.same(DifferenceKind.RESULT) if self.over else None},
            "sections": [
                {"name": one.name, "kind": one.kind, "differences": [each.to_json() for each in one.differences]}
                for one in self.sections
            ],
            "files": [change.to_json() for change in self.files],
            "notes": list(self.notes),
        }


def compare(first: Side, second: Side, read: Read) -> Comparison:
    scripts = files.compare_texts("script", first.spec.get("script"), second.spec.get("script"))
    is_there = all(side.code is not None or not side.spec.get("code") for side in (first, second))
    changes = files.compare(first.code, second.code, read) if is_there else ()
    without = [str(side.run["id"]) for side in (first, second) if not side.spec.get("code")]
    sections = [one for one in _sections(first, second) if one.differences]
    return Comparison(
        runs=(first.run["id"], second.run["id"]),
        sections=tuple(sections),
        files=(*scripts, *changes),
        knows_code=not without,
        over=all(side.run["state"] in FINAL for side in (first, second)),
        notes=(*first.notes, *second.notes, *_of_code(without)),
    )


def _of_code(without: Sequence[str]) -> Iterator[str]:
    if without:
        whose = f"run {without[0]} has" if len(without) == 1 else f"runs {' and '.join(without)} have"
        yield f"{whose} no snapshot of the code: whether it was the same is not known (submit with --code .)"


def _sections(first: Side, second: Side) -> Iterator[Section]:
    one, two = first.spec, second.spec
    yield section("parameters", DifferenceKind.ASKED, flat(one.get("params", {})), flat(two.get("params", {})))
    yield section("command", DifferenceKind.ASKED, _group(one, Diff.COMMAND), _group(two, Diff.COMMAND))
    yield _hidden(section("environment", DifferenceKind.ASKED, one.get("env", {}), two.get("env", {})))
    yield section("seed", DifferenceKind.ASKED, _fields(one, ("seed",)), _fields(two, ("seed",)))
    yield section("code", DifferenceKind.ASKED, _code(one), _code(two))
    yield section("data", DifferenceKind.ASKED, _data(one), _data(two))
    yield section("python", DifferenceKind.ASKED, _python(one), _python(two))
    if first.packages and second.packages:  # else one of them is not known
        yield section("packages", DifferenceKind.ASKED, first.packages, second.packages)
    yield section("resources", DifferenceKind.ASKED, first.run["resources"], second.run["resources"])
    yield section("wanted place", DifferenceKind.ASKED, flat(_group(one, Diff.SITE)), flat(_group(two, Diff.SITE)))
    yield section("settings", DifferenceKind.ASKED, flat(_others(one)), flat(_others(two)))
    yield section("names", DifferenceKind.LABEL, _labels(first), _labels(second))
    yield section("git", DifferenceKind.LABEL, _git(one), _git(two))
    yield _hidden(section("submitted from", DifferenceKind.LABEL, _origin(one), _origin(two)))
    yield section("place", DifferenceKind.PLACE, _place(first), _place(second))
    yield section("ending", DifferenceKind.RESULT, _fields(first.run, ENDING), _fields(second.run, ENDING))
    yield section("metrics", DifferenceKind.RESULT, first.metrics, second.metrics)
    yield section("outputs", DifferenceKind.RESULT, first.outputs, second.outputs)
    yield section("effort", DifferenceKind.EFFORT, _fields(first.run, EFFORT), _fields(second.run, EFFORT))


def _fields(values: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: values[name] for name in names if values.get(name) is not None}


def _hidden(found: Section) -> Section:
    """Values of variables with a secret's name are not shown, only that they differ."""
    kept = tuple(one.hidden(HIDDEN) if _SECRET.search(one.name) else one for one in found.differences)
    return Section(name=found.name, kind=found.kind, differences=kept)


def _code(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"snapshot": spec["code"]["tree"]} if spec.get("code") else {}


def _git(spec: Mapping[str, Any]) -> dict[str, Any]:
    return _fields((spec.get("code") or {}).get("git") or {}, ("head", "branch", "remote", "dirty"))


def _data(spec: Mapping[str, Any]) -> dict[str, Any]:
    """By where the run finds it: the digest, or where it was fetched from."""
    items = [*(spec.get("data") or ()), *(spec.get("inputs") or ())]
    return {item["to"]: item.get("tree") or item.get("path") or item.get("digest") or item.get("url") for item in items}


def _python(spec: Mapping[str, Any]) -> dict[str, Any]:
    whole = _python_env(spec)
    built = {"built from": whole["file"], "by": whole.get("kind")} if whole.get("file") else {}
    version = (whole.get("record") or {}).get("python")
    return {"use": whole.get("use", "record"), **built, **({"version": version} if version else {})}


def _python_env(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    told = spec.get("python_env") or {}
    return {"use": told} if isinstance(told, str) else told


def _group(spec: Mapping[str, Any], group: Diff) -> dict[str, Any]:
    return _fields(spec, names(RunSpec, lambda one: one.diff is group))


def _others(spec: Mapping[str, Any]) -> dict[str, Any]:
    known = names(RunSpec, lambda one: one.diff is not Diff.SETTINGS)
    array = _fields(spec.get("array") or {}, ("index", "first", "last", "step"))  # not which neighbours it has
    return {**{name: value for name, value in spec.items() if name not in known}, "array": array}


def _labels(side: Side) -> dict[str, Any]:
    return {**_fields(side.run, ("owner", "recipe")), **_group(side.spec, Diff.LABELS)}


def _origin(spec: Mapping[str, Any]) -> dict[str, Any]:
    told = spec.get("origin") or {}
    record = _python_env(spec).get("record") or {}
    host = {"host": told["host"]} if told.get("host") else {}
    return {**host, **({"python": record["prefix"]} if record.get("prefix") else {}), **told.get("env", {})}


def _place(side: Side) -> dict[str, Any]:
    granted = side.run.get("granted") or {}
    return {
        **_fields(side.run, ("site", "node")),
        **{f"granted {name}": value for name, value in granted.items() if value},
    }
