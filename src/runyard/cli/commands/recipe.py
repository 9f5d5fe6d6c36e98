"""`runyard recipe`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from runyard.cli.input import key_values, spec_file
from runyard.cli.input.command_groups import BareGroup
from runyard.cli.show import formats, output, plan_page
from runyard.client import Client, run_inputs
from runyard.client.client import quoted
from runyard.model.spec_values import name_text


@click.group("recipe", cls=BareGroup, bare="list")
def command() -> None:
    """Manage recipes: runs that other programs may start.

    A recipe describes a run once, with a schema of its parameters; programs start it by name and never send a command.
    Without a subcommand it lists the recipes.
    """


@command.command("add")
@click.argument("name")
@click.option("-f", "--file", required=True, metavar="FILE", help="The recipe, in YAML or JSON; - is stdin.")
@click.option("--default", is_flag=True, help="Use it for requests that name no recipe.")
@output.json_option
def add(name: str, file: str, default: bool, as_json: bool) -> None:
    """Add or replace a recipe; runs that have started are not affected.

    \b
    runyard recipe add ic-train -f recipe.yaml --default
    """
    name_text(name, "NAME")
    recipe = _absolute(spec_file.read_mapping(file, "recipe"), file)
    made = Client().put_recipe(name, recipe, default=default)
    which = "the default recipe" if made["default"] else "a recipe"
    said = f"{name} is {which}; try it with runyard recipe test {name} -f params.json"
    output.writer(as_json).write(made, lambda _: click.echo(said))


def _absolute(recipe: dict[str, Any], file: str) -> dict[str, Any]:
    """Relative paths are relative to the file's directory."""
    beside = os.path.dirname(os.path.abspath(file)) if file != "-" else os.getcwd()
    whole = run_inputs.resolve(recipe, Path(beside))
    if isinstance(recipe.get("cwd"), str):
        whole["cwd"] = os.path.normpath(os.path.join(beside, os.path.expanduser(recipe["cwd"])))
    return whole


@command.command("list")
@output.quiet_option
@output.json_option
def list_recipes(quiet: bool, as_json: bool) -> None:
    """List recipes."""
    recipes = Client(start=False).recipes()

    def draw(console: Any) -> None:
        from runyard.cli.show import tables

        columns = (
            tables.Column(title="RECIPE", value=lambda recipe: recipe["name"]),
            tables.Column(title="DEFAULT", value=lambda recipe: "yes" if recipe["default"] else "", boring=("",)),
            tables.Column(title="CALLERS", value=lambda recipe: " ".join(recipe["callers"]) or "members"),
            tables.Column(title="DESCRIPTION", value=lambda recipe: recipe["description"], flexible=True, boring=("",)),
        )
        console.print(tables.build(columns, recipes))

    output.writer(as_json, quiet).write(recipes, draw, [recipe["name"] for recipe in recipes])


@command.command("show")
@click.argument("name")
@output.json_option
def show(name: str, as_json: bool) -> None:
    """Show a recipe in the format that `recipe add` reads."""
    recipe = Client(start=False).recipe(name)

    def draw(console: Any) -> None:
        import yaml

        when = f"changed by {recipe['changed_by']} {formats.ago(recipe['changed_at'])} ago"
        click.echo(f"# {name}{', the default recipe' if recipe['default'] else ''}; {when}")
        click.echo(yaml.safe_dump(recipe["config"], sort_keys=False, allow_unicode=True).rstrip())

    output.writer(as_json).write(recipe, draw)


@command.command("test")
@click.argument("name")
@click.option("-f", "--file", metavar="FILE", help="The parameters of a request, in JSON or YAML; - is stdin.")
@click.option("-p", "--param", "params", multiple=True, metavar="K=V", help="A parameter; a.b=1 nests. Repeatable.")
@output.json_option
def test(name: str, file: str | None, params: tuple[str, ...], as_json: bool) -> None:
    """Check a request and show what it would run; nothing is stored.

    Parameters are checked against the schema, resources against the recipe's limits and the sites.
    """
    client = Client(start=False)
    given: Mapping[str, Any] = spec_file.read_mapping(file, "parameters") if file else {}
    planned = client.plan_request(name, key_values.parameters(params, given))
    planned["first"] = plan_page.complete(client, planned["first"])
    count = planned["runs"]
    title = "would run" if count == 1 else f"would run {count} times, first"
    output.writer(as_json).write(planned, lambda console: plan_page.draw(console, planned["first"], title))


@command.command("remove")
@click.argument("name")
@output.json_option
def remove(name: str, as_json: bool) -> None:
    """Remove a recipe; its runs are kept."""
    Client(start=False).call("DELETE", f"/recipes/{quoted(name)}")
    output.writer(as_json).write({"removed": name}, lambda _: click.echo(f"recipe {name} removed"))
