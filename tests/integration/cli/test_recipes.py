"""`runyard recipe`, as an administrator types it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.labs.yard import Yard

Result = subprocess.CompletedProcess[str]
RECIPE = """\
description: says a word
command: [echo, "{word}", "{model.size}"]
cwd: .
schema:
  properties:
    word: {type: string, maxLength: 10}
    model: {type: object, default: {}, properties: {size: {type: integer, default: 3}}}
  required: [word]
"""


@pytest.fixture
def recipe(cli: Callable[..., Result], tmp_path: Path) -> Path:
    file = tmp_path / "recipe.yaml"
    file.write_text(RECIPE)
    cli("recipe", "add", "say", "-f", str(file))
    return file


def test_a_recipe_from_a_file_with_its_directory(document: Callable[..., Any], recipe: Path) -> None:
    shown = document("recipe", "show", "say")
    assert shown["config"]["cwd"] == str(recipe.parent)
    assert shown["config"]["command"] == ["echo", "{word}", "{model.size}"]
    assert not shown["default"]


def test_what_show_prints_can_be_added_again(
    cli: Callable[..., Result], document: Callable[..., Any], recipe: Path
) -> None:
    recipe.write_text(cli("recipe", "show", "say").stdout)
    made = document("recipe", "add", "again", "-f", str(recipe), "--default")
    assert made["default"] and made["config"] == document("recipe", "show", "say")["config"]
    assert "recipe again removed" in cli("recipe", "remove", "again").stdout


def test_the_list(cli: Callable[..., Result], document: Callable[..., Any], recipe: Path) -> None:
    assert cli("recipe", "list", "-q").stdout.split() == ["say"]
    assert "says a word" in cli("recipe").stdout
    assert document("recipe", "list")[0]["schema"]["required"] == ["word"]


def test_a_test_shows_what_would_run(cli: Callable[..., Result], document: Callable[..., Any], recipe: Path) -> None:
    said = cli("recipe", "test", "say", "-p", "word=hi there").stdout
    assert "would run\n" in said and "echo 'hi there' 3" in said and str(recipe.parent) in said
    params = recipe.with_name("grid.json")
    params.write_text(json.dumps({"_run_group_type": "grid", "word": ["a", "b"], "model": {"size": [1, 2]}}))
    assert "would run 4 times, first" in cli("recipe", "test", "say", "-f", str(params)).stdout
    assert document("recipe", "test", "say", "-f", str(params))["first"]["argv"] == ["echo", "a", "1"]


def test_a_recipe_runs_by_the_client(shared: Yard, recipe: Path) -> None:
    (run,) = shared.client().request("say", {"word": "hello"})
    assert run.wait(60).state == "succeeded"
    assert run.logs() == "hello 3\n"
    assert run.recipe == "say"


def test_a_callers_token(cli: Callable[..., Result], document: Callable[..., Any], recipe: Path) -> None:
    made = document("token", "create", "web", "--role", "caller", "--recipe", "say")
    assert made["recipes"] == ["say"]
    assert "say" in cli("token", "list").stdout


def test_refusals(refused: Callable[..., str], recipe: Path) -> None:
    assert "params.word: is missing" in refused("recipe", "test", "say", code=2)
    assert "has 11 characters, more than the maximum 10" in refused(
        "recipe", "test", "say", "-p", "word=abcdefghijk", code=2
    )
    assert "there is no recipe 'sya'" in refused("recipe", "test", "sya", code=1)
    assert "did you mean 'say'" in refused("recipe", "show", "sya", code=1)
    assert "there is no recipe 'nothing'" in refused("recipe", "remove", "nothing", code=1)
    assert "NAME: '../x' is not a valid name" in refused("recipe", "add", "../x", "-f", str(recipe), code=2)
    recipe.write_text("[1]")
    assert "contains no recipe" in refused("recipe", "add", "x", "-f", str(recipe), code=2)
    recipe.write_text("comand: x")
    assert "unknown field 'comand'" in refused("recipe", "add", "x", "-f", str(recipe), code=2)
    assert "only a caller's token names recipes" in refused("token", "create", "x", "--recipe", "say", code=2)
