"""A field is declared once, and everything that knows of fields finds it there."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

import runyard
from runyard import errors
from runyard.model.declaration import Beside, Declared, Field, Value, declared, field, schema
from runyard.model.resources import Resources
from runyard.model.roles import NewToken, Role
from runyard.model.spec import RunSpec
from runyard.model.values import Choice, Flag, Many, OneOrMany, Part, Switch, Text, Whole

SOURCE = Path(runyard.__file__).parent
PAGE = Path(__file__).resolve().parents[3] / "scripts" / "write_cli_page.py"
PLAIN_JSON = ("runner", "job", "pythons", "hosts/far")  # run elsewhere, and can import no declaration
NEW = """\
    license: int = field(
        Whole(0, 9), default=0, recipe=True, alike=True, help="Licenses that it takes", option=Option("--license", "N"),
    )

    @classmethod
    def parse(cls, value: object, where: str = "") -> RunSpec:
"""
LOOK = """\
import json, runpy, sys
from click.testing import CliRunner
from runyard import errors
from runyard.cli.commands import submit
from runyard.client.compare.comparison import Side, compare
from runyard.model.recipe import Recipe
from runyard.model.spec import RunSpec
from runyard.server.openapi import build_document
from runyard.server.routes import ROUTES
from runyard.yard.placement import claim

def refusal(given):
    try:
        RunSpec.parse({"command": ["x"], **given})
    except errors.InvalidInput as error:
        return f"{error.message} {error.fix}".strip()

def side(number, spec):
    run = {"id": number, "state": "succeeded", "resources": {}, "spec": {"command": ["x"], **spec}}
    return Side(run=run)

sections = compare(side(1, {"license": 1}), side(2, {"license": 2}), None).sections
print(json.dumps({
    "parsed": RunSpec.parse({"command": ["x"], "license": 3}).to_json(),
    "usual": RunSpec.parse({"command": ["x"]}).to_json(),
    "recipe": Recipe.parse({"command": ["x"], "license": 3}).run.license,
    "refused": [refusal({"license": 10}), refusal({"licence": 1})],
    "schema": build_document(ROUTES)["components"]["schemas"]["RunSpec"]["properties"]["license"],
    "help": CliRunner().invoke(submit.command, ["--help"]).output,
    "page": runpy.run_path(sys.argv[1])["page"](),
    "diff": [[one.name, [each.to_json() for each in one.differences]] for one in sections],
    "batch": claim.ALIKE,
}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program knows of a field that was added to model/spec.py, and nowhere else."""
    root = tmp_path_factory.mktemp("source")
    shutil.copytree(SOURCE, root / "runyard", ignore=shutil.ignore_patterns("__pycache__"))
    declaring = root / "runyard" / "model" / "spec.py"
    before, parse, after = declaring.read_text().rpartition(NEW.partition("\n\n")[2])
    assert parse, "the fields of a run end where its parser begins"
    declaring.write_text(before + NEW + after)
    told = subprocess.run(
        [sys.executable, "-c", LOOK, str(PAGE)],
        env={"PYTHONPATH": str(root), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def test_a_new_field_is_parsed_and_written(found: dict[str, Any]) -> None:
    assert found["parsed"]["license"] == 3
    assert "license" not in found["usual"]
    assert found["recipe"] == 3
    assert found["refused"] == [
        "license: 10 is not between 0 and 9",
        "run: unknown field 'licence' did you mean 'license'?",
    ]


def test_a_new_field_is_in_the_schema_and_the_help_and_the_reference(found: dict[str, Any]) -> None:
    limits = {"type": ["integer", "null"], "minimum": 0, "maximum": 9, "default": 0}
    assert found["schema"] == {**limits, "description": "Licenses that it takes"}
    assert "--license N" in found["help"]
    assert "Licenses that it takes (default 0)." in found["help"]
    assert "Licenses that it takes (default 0)." in found["page"]


def test_a_new_field_is_in_the_diff_and_the_batch_key(found: dict[str, Any]) -> None:
    ((name, (difference,)),) = found["diff"]
    assert (name, difference["name"]) == ("settings", "license")
    assert "license" in found["batch"]


@dataclass(frozen=True, kw_only=True)
class Inner(Declared):
    place: ClassVar[str] = "inner"
    short: ClassVar[str] = "size"

    size: int = field(Whole(1, 5), help="How many")
    words: tuple[str, ...] = field(OneOrMany(Text(3)), default=(), brief=True)


@dataclass(frozen=True, kw_only=True)
class Outer(Declared):
    place: ClassVar[str] = "outer"
    root: ClassVar[bool] = True

    part: Inner = field(Part(Inner), missing="give one")
    other: Inner | None = field(Part(Inner, inline=True), default=None, brief=True)
    yes: bool = field(Flag(), default=False)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "outer: no part"),
        ([], "outer: must be a mapping of names to values"),
        ({"part": {}}, "part: size is missing"),
        ({"part": 6}, "part.size: 6 is not between 1 and 5"),
        ({"part": {"size": 1, "wrods": []}}, "part: unknown field 'wrods'"),
        ({"part": {"size": 1, "words": ["long"]}}, "part.words: longer than 3 characters"),
        ({"part": {"size": 1, "words": 7}}, "part.words: must be a list"),
        ({"part": 1, "yes": 1}, "yes: must be true or false"),
    ],
)
def test_errors_name_the_place(given: object, sentence: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        Outer.parse(given)
    assert caught.value.message == sentence


def test_a_bare_value_means_one_field_and_null_means_nothing() -> None:
    made = Outer.parse({"part": 2, "other": None, "yes": None})
    assert made == Outer(part=Inner(size=2))
    assert made.to_json() == {"part": {"size": 2}, "yes": False}
    assert Outer.parse(made.to_json()) == made


@pytest.mark.parametrize(
    ("value", "given", "sentence"),
    [
        (Many(Whole(1, 9), least=1), [], "x: has 0 items, and needs 1"),
        (Many(Whole(1, 9), most=1), [1, 2], "x: has 2 items, more than 1"),
        (Many(Whole(1, 9)), [1, "2"], "x[1]: '2' is not a whole number"),
        (Many(Whole(1, 9)), "1", "x: must be a list"),
        (Choice(Role), "admni", "x: 'admni' is not known"),
    ],
)
def test_errors_of_lists_and_choices(value: Value, given: object, sentence: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        value.parse(given, "x")
    assert caught.value.message == sentence


def test_a_choice_of_an_enumeration_is_its_member_and_a_word_in_json() -> None:
    token = NewToken.parse({"name": "ada", "role": "viewer"})
    assert token.role is Role.VIEWER
    assert type(token.to_json()["role"]) is str


@dataclass(frozen=True, kw_only=True)
class Around(Declared):
    place: ClassVar[str] = "around"
    root: ClassVar[bool] = True

    label: str = ""  # of no document
    yes: int = field(Whole(0, 9), default=0, brief=True, also={"ja": Field(value=Whole(0, 5), help="The same")})
    inside: Outer = field(Beside(Outer, lambda one: one.name != "other"))


def test_fields_of_another_class_stand_beside_its_own() -> None:
    made = Around.parse({"part": 2, "yes": 3})
    assert made == Around(yes=3, inside=Outer(part=Inner(size=2)))
    assert made.to_json() == {"part": {"size": 2}, "yes": 3}
    assert set(schema(Around)["properties"]) == {"part", "yes", "ja"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "outer: no part"),
        ({"part": 1, "other": 2}, "around: unknown field 'other'"),
        ({"part": 1, "label": "x"}, "around: unknown field 'label'"),
        ({"part": 1, "ja": 6}, "ja: 6 is not between 0 and 5"),
        ({"part": 1, "yes": 1, "ja": 1}, "ja: there is yes already"),
    ],
)
def test_errors_of_fields_that_stand_beside(given: object, sentence: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        Around.parse(given)
    assert caught.value.message == sentence


def test_a_switch_is_on_or_off_or_said_in_full() -> None:
    value = Switch(Resources)
    assert (value.parse(True, "x"), value.parse(False, "x")) == (Resources(), None)
    assert value.parse({"cpus": 2}, "x") == Resources(cpus=2)


def test_the_schema_says_what_must_be_there() -> None:
    shape = schema(Outer)
    assert shape["required"] == ["part"]
    assert shape["properties"]["part"]["anyOf"][1] == {"$ref": "#/components/schemas/Inner"}
    assert shape["properties"]["yes"]["type"] == ["boolean", "null"]


def test_only_the_example_beside_the_declarations_lists_fields_of_a_run() -> None:
    known = {*declared(RunSpec), *declared(Resources)}
    files = {str(path.relative_to(SOURCE)): path for path in SOURCE.rglob("*.py")}
    found = {name for name, path in files.items() if not name.startswith(PLAIN_JSON) and any(_lists(path, known))}
    assert found == {"model/spec.py"}, "derive it from the declarations: runyard.model.declaration.names"


@pytest.mark.parametrize(
    ("source", "is_list"),
    [
        ("FIELDS = ('cpus', 'memory', 'gpus')", True),
        ("def f():\n    for name in ['cpus', 'memory', 'gpus']: ...", True),
        ("READ = {'cpus': int, 'memory': size, 'gpus': int}", True),
        ("def f():\n    return {'cpus': int, 'memory': size, 'gpus': int}[name]", True),
        ("def f(job):\n    return {'cpus': job.cpus, 'memory': job.memory, 'gpus': 0}", False),
        ("NAMES = ('cpus', 'memory', 'weight', 'height')", False),
    ],
)
def test_what_counts_as_a_list_of_fields(source: str, is_list: bool, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(source)
    assert any(_lists(tmp_path / "module.py", set(declared(Resources)))) == is_list


def _lists(path: Path, known: set[str]) -> Iterator[list[str]]:
    """Literals that are mostly names of fields. A mapping that a function makes is one document, with a value for each
    of its names, unless something is looked up in it at once."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    made = {id(inner) for function in functions for inner in ast.walk(function) if isinstance(inner, ast.Dict)}
    made -= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Subscript)}
    for node in ast.walk(tree):
        items = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", ())
        words = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
        fields = [word for word in words if word in known]
        if len(fields) >= 3 and 2 * len(fields) > len(words) and id(node) not in made:
            yield fields
