from __future__ import annotations

from typing import Any

import pytest

from runyard import errors
from runyard.model.recipe import Recipe
from runyard.model.roles import Caller, Role

GB = 1 << 30
RODAN: dict[str, Any] = {
    "command": ["python", "trainer.py", "--epochs", "{settings.Maximum number of training epochs}"],
    "resources": {"cpus": 2, "memory": "3G", "time": "3h", "gpus": 1},
    "bounds": {"cpus": 8, "memory": "64G", "time": "1-00:00"},
    "resources_from": {
        "cpus": "settings.CPUs",
        "memory": {"param": "settings.Maximum memory (MB)", "writing": "slurm"},
        "time": {"param": "settings.Maximum time (D-HH:MM)", "writing": "slurm"},
    },
}
SETTINGS = {
    "Maximum number of training epochs": 15,
    "CPUs": 6,
    "Maximum memory (MB)": 32768,
    "Maximum time (D-HH:MM)": "0-06:00",
}


def rodan(**changes: Any) -> Any:
    return Recipe.parse(RODAN).prepare("calvo", {"settings": {**SETTINGS, **changes}})


def test_resources_come_from_the_request_in_its_own_units() -> None:
    run = rodan()
    assert (run.resources.cpus, run.resources.memory, run.resources.time) == (6, 32 * GB, 6 * 3600)
    assert run.resources.gpus == 1
    assert run.argv() == ["python", "trainer.py", "--epochs", "15"]
    assert run.name == "calvo"


def test_a_whole_number_may_be_written_with_a_point() -> None:
    run = rodan(**{"CPUs": 2.0, "Maximum memory (MB)": 2048.0})
    assert (run.resources.cpus, run.resources.memory) == (2, 2 * GB)


def test_what_a_request_does_not_say_is_the_recipes_own() -> None:
    run = rodan(**{"Maximum memory (MB)": None, "Maximum time (D-HH:MM)": ""})
    assert (run.resources.memory, run.resources.time) == (3 * GB, 3 * 3600)


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("CPUs", 9, "params.settings.CPUs: 9 cpus is more than the 8 cpus that recipe 'calvo' allows"),
        ("CPUs", 0, "params.settings.CPUs: 0 is not between"),
        ("CPUs", "many", "params.settings.CPUs: 'many' is not a whole number"),
        ("CPUs", True, "params.settings.CPUs: true is no amount of cpus"),
        ("CPUs", 1.5, "params.settings.CPUs: '1.5' is not a whole number"),
        ("Maximum memory (MB)", 65537, "is more than the 64.0 GB that recipe 'calvo' allows"),
        ("Maximum memory (MB)", "unlimited", "means no limit"),
        ("Maximum memory (MB)", [1], "is no amount of memory"),
        ("Maximum time (D-HH:MM)", "1-00:01", "is more than the"),
        ("Maximum time (D-HH:MM)", "tomorrow", "params.settings.Maximum time"),
    ],
)
def test_asking_for_too_much(setting: str, value: Any, message: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        rodan(**{setting: value})
    assert message in caught.value.message


NOTIFYING = Recipe.parse({"command": ["x"], "options": {"partition": "gpu"}, "options_from": {"mail-user": "Email"}})


def test_options_come_from_the_request() -> None:
    assert NOTIFYING.prepare("x", {"Email": "ada@lab.example"}).options == {
        "partition": "gpu",
        "mail-user": "ada@lab.example",
    }
    for nothing in ({}, {"Email": ""}, {"Email": None}):
        assert NOTIFYING.prepare("x", nothing).options == {"partition": "gpu"}


@pytest.mark.parametrize(
    "value", ["a b", "a\n#SBATCH --uid=0", "--uid=0", "$(id)", "a;b", "'a'", ["a"], {"a": 1}, "x" * 201]
)
def test_an_option_is_one_plain_word(value: Any) -> None:
    with pytest.raises(errors.InvalidInput, match="cannot be an option of a scheduler"):
        NOTIFYING.prepare("x", {"Email": value})


SIMPLE: dict[str, Any] = {
    "command": ["train", "--lr", "{model.learning_rate}", "{{x}}"],
    "schema": {
        "properties": {
            "model": {
                "default": {},
                "additionalProperties": False,
                "properties": {"learning_rate": {"type": "number", "maximum": 1, "default": 0.1}},
            }
        },
    },
}


def test_nested_parameters_and_defaults() -> None:
    recipe = Recipe.parse(SIMPLE)
    assert recipe.prepare("x", {}).argv() == ["train", "--lr", "0.1", "{x}"]
    run = recipe.prepare("x", {"model": {"learning_rate": 0.5}, "more": [1]})
    assert run.argv() == ["train", "--lr", "0.5", "{x}"]
    assert run.params == {"model": {"learning_rate": 0.5}, "more": [1]}


def test_a_parameter_outside_its_schema() -> None:
    with pytest.raises(errors.InvalidInput, match=r"^params.model.learning_rate: 5 is more than the maximum 1$"):
        Recipe.parse(SIMPLE).prepare("x", {"model": {"learning_rate": 5}})


@pytest.mark.parametrize("command", [["train", "{lr}"], "train {lr}"])
def test_without_any_parameters_a_placeholder_is_still_one(command: Any) -> None:
    """A run without parameters keeps its braces; a recipe's must not reach the command as they are."""
    recipe = Recipe.parse({"command": command})
    with pytest.raises(errors.InvalidInput, match="no parameter 'lr'"):
        recipe.prepare("x", {})


def test_braces_of_a_recipe_mean_the_same_with_and_without_parameters() -> None:
    recipe = Recipe.parse({"command": "echo '{{a}}'"})
    assert recipe.prepare("x", {}).argv() == recipe.prepare("x", {"b": 1}).argv() == ["/bin/sh", "-c", "echo '{a}'"]


def test_values_are_quoted_for_the_shell() -> None:
    run = Recipe.parse({"command": "echo {word}"}).prepare("x", {"word": "a; rm -rf /"})
    assert run.argv() == ["/bin/sh", "-c", "echo 'a; rm -rf /'"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({}, "run: no command"),
        ({"command": ["x"], "comand": 1}, "recipe: unknown field 'comand'"),
        ({"command": ["x"], "params": {}}, "recipe: unknown field 'params'"),
        ({"command": ["x"], "schema": {"typ": "x"}}, "schema: the keyword 'typ' is not known"),
        ({"command": ["{"]}, "command: a single '{'"),
        ({"command": ["{model.lr}"], "schema": SIMPLE["schema"]}, "command: the schema has no parameter 'model.lr'"),
        ({"command": ["x"], "bounds": {"cpu": 1}}, "bounds: unknown field 'cpu'"),
        ({"command": ["x"], "bounds": {"memory": "lots"}}, "bounds.memory: 'lots'"),
        ({"command": ["x"], "resources_from": {"cpus": "cpus"}}, "bounds: cpus may be asked for and has no bound"),
        ({"command": ["x"], "resources": {"cpus": 3}, "bounds": {"cpus": 2}}, "resources.cpus: is more than bounds"),
        (
            {"command": ["x"], "bounds": {"cpus": 2}, "resources_from": {"cpus": {"param": "a", "writing": "pbs"}}},
            "resources_from.cpus.writing: 'pbs' is not known",
        ),
        ({"command": ["x"], "callers": ["a b"]}, "callers: 'a b' is not a valid name"),
        ({"command": ["x"], "cwd": "here"}, "cwd: 'here' is not an absolute path"),
    ],
)
def test_bad_recipes(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        Recipe.parse(bad)
    assert message in caught.value.message


@pytest.mark.parametrize(
    "given", [RODAN, SIMPLE, NOTIFYING.to_json(), {**SIMPLE, "callers": "web", "description": "x", "tags": ["a"]}]
)
def test_a_recipe_survives_its_json(given: dict[str, Any]) -> None:
    recipe = Recipe.parse(given)
    assert Recipe.parse(recipe.to_json()) == recipe


def may(role: Role, name: str = "ada", callers: tuple[str, ...] = (), **more: Any) -> bool:
    recipe = Recipe.parse({"command": ["x"], "callers": list(callers)})
    return recipe.may_be_called_by(Caller(name=name, role=role, **more), "x")


def test_who_may_call() -> None:
    assert may(Role.ADMIN) and may(Role.ADMIN, callers=("web",))
    assert may(Role.MEMBER) and not may(Role.MEMBER, callers=("web",))
    assert may(Role.MEMBER, "web", ("web",))
    assert not may(Role.CALLER)
    assert may(Role.CALLER, recipes=("x",)) and not may(Role.CALLER, recipes=("y",))
    assert may(Role.CALLER, "web", ("web",)) and may(Role.CALLER, callers=("web",), recipes=("x",))
    assert may(Role.CALLER, any_recipe=True) and not may(Role.CALLER, callers=("web",), any_recipe=True)
    assert not may(Role.VIEWER) and not may(Role.VIEWER, "web", ("web",))
    assert not may(Role.AGENT)
