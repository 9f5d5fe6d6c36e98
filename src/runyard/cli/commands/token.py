"""`runyard token`."""

from __future__ import annotations

from typing import Any

import click

from runyard import errors
from runyard.cli.input.command_groups import BareGroup
from runyard.cli.show import formats, output
from runyard.client import Client
from runyard.model.nodes import Limits
from runyard.model.roles import Role


@click.group("token", cls=BareGroup, bare="show")
def command() -> None:
    """Show, create, list and revoke tokens.

    A token identifies a client to the yard. Without a subcommand it prints yours.
    """


@command.command("show")
@output.json_option
def show(as_json: bool) -> None:
    """Print the token that this machine's commands use."""
    secret = Client(start=False).token
    output.writer(as_json).write({"token": secret}, lambda console: click.echo(secret))


@command.command("create")
@click.argument("name")
@click.option("--role", type=click.Choice([role.value for role in Role]), default=Role.MEMBER.value, show_default=True,
              help="What the token allows.")  # fmt: skip
@click.option("--site", metavar="SITE", help="Site of an agent's token.")
@click.option(
    "--only-project",
    "projects",
    multiple=True,
    metavar="P",
    help="Restrict an agent's token to this project. Repeatable.",
)
@click.option(
    "--only-user",
    "users",
    multiple=True,
    metavar="U",
    help="Restrict an agent's token to this user. Repeatable.",
)
@click.option(
    "--recipe", "recipes", multiple=True, metavar="NAME", help="Recipe that a caller's token may start. Repeatable."
)
@output.quiet_option
@output.json_option
def create(
    name: str, role: str, site: str | None, projects: tuple[str, ...], users: tuple[str, ...], recipes: tuple[str, ...],
    quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Create a token for another user, an agent or a program. It is shown only once."""
    if (role == Role.AGENT) != bool(site):
        raise errors.InvalidInput("an agent's token is for one site", "give --role agent and --site NAME together")
    if recipes and role != Role.CALLER:
        raise errors.InvalidInput("only a caller's token names recipes", "give --role caller with --recipe NAME")
    if (projects or users) and role != Role.AGENT:
        raise errors.InvalidInput("only an agent's token is for some projects or people", "give --role agent")
    asked: dict[str, Any] = {"name": name, "role": role, **({"site": site} if site else {})}
    asked["limits"] = {"projects": list(projects), "users": list(users)}
    made = Client(start=False).call("POST", "/tokens", {**asked, "recipes": list(recipes)})

    def draw(console: Any) -> None:
        click.echo(made["secret"])
        output.remark(f"token {made['id']} for {name}, role {role}: shown only once; the user sets it as RUNYARD_TOKEN")

    output.writer(as_json, quiet).write(made, draw, [made["secret"]])


@command.command("list")
@output.json_option
def list_tokens(as_json: bool) -> None:
    """List all tokens, without their secrets."""
    tokens = Client(start=False).call("GET", "/tokens")["tokens"]

    def draw(console: Any) -> None:
        from runyard.cli.show import tables

        columns = (
            tables.Column(title="ID", value=lambda token: str(token["id"]), right=True),
            tables.Column(title="NAME", value=lambda token: token["name"], flexible=True),
            tables.Column(title="ROLE", value=lambda token: token["role"]),
            tables.Column(title="SITE", value=lambda token: token["site"] or "-", boring=("-",)),
            tables.Column(title="ONLY", value=lambda token: Limits.from_json(token["limits"]).describe(), boring=("",)),
            tables.Column(title="RECIPES", value=lambda token: " ".join(token["recipes"]), boring=("",)),
            tables.Column(title="AGE", value=lambda token: formats.ago(token["created_at"]), right=True),
        )
        console.print(tables.build(columns, tokens))

    output.writer(as_json).write(tokens, draw, [token["id"] for token in tokens])


@command.command("revoke")
@click.argument("ids", nargs=-1, type=int, required=True, metavar="ID...")
@output.json_option
def revoke(ids: tuple[int, ...], as_json: bool) -> None:
    """Revoke tokens by their numbers in `token list`."""
    client = Client(start=False)
    for number in ids:
        client.call("DELETE", f"/tokens/{number}")
    said = ", ".join(map(str, ids))
    output.writer(as_json).write({"revoked": list(ids)}, lambda console: click.echo(f"revoked {said}"))
