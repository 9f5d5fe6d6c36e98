"""`runyard site`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from runyard.cli import output, site_changes, site_page, site_test
from runyard.cli.groups import BareGroup
from runyard.client import Client
from runyard.client.client import quoted
from runyard.model import units

Site = Mapping[str, Any]


@click.group("site", cls=BareGroup, bare="list")
def command() -> None:
    """Add, list, show, change, drain and remove sites.

    A site is a place where runs execute; `local` is this machine. Without a command it lists them.
    """


for part in (site_changes.add, site_changes.edit, site_changes.remove, site_test.test):
    command.add_command(part)


@command.command("list")
@output.quiet_option
@output.json_option
def list_sites(quiet: bool, as_json: bool) -> None:
    """List sites with what they have and what is free."""
    sites = Client(start=False).sites()

    def draw(console: Any) -> None:
        console.print(table(sites))
        for site in sites:
            if site["note"]:
                output.remark(f"{site['name']}: {site['note']}")

    output.writer(as_json, quiet).write(sites, draw, [site["name"] for site in sites])


@command.command("show")
@click.argument("name")
@output.json_option
def show(name: str, as_json: bool) -> None:
    """Show a site: its nodes, what is free there, and who runs what on which of them."""
    site = Client(start=False).site(name)

    def draw(console: Any) -> None:
        site_page.draw(console, site, table([site]))

    output.writer(as_json).write(site, draw)


@command.command("drain")
@click.argument("name")
@output.json_option
def drain(name: str, as_json: bool) -> None:
    """Let a site start nothing new; what runs there goes on."""
    _change(name, "drain", as_json, f"{name} starts nothing new; runyard site resume {name} undoes this")


@command.command("resume")
@click.argument("name")
@output.json_option
def resume(name: str, as_json: bool) -> None:
    """Let a drained site start runs again."""
    _change(name, "resume", as_json, f"{name} starts runs again")


def _change(name: str, verb: str, as_json: bool, said: str) -> None:
    site = Client(start=False).call("POST", f"/sites/{quoted(name)}/{verb}", repeatable=True)
    output.writer(as_json).write(site, lambda console: click.echo(said))


def table(sites: list[Any]) -> Any:
    from runyard.cli import tables

    return tables.build(
        (
            tables.Column(title="SITE", value=lambda site: site["name"]),
            tables.Column(title="KIND", value=lambda site: site["kind"]),
            tables.Column(title="STATE", value=_state, coloured=True),
            tables.Column(title="CPUS FREE", value=_amount("cpus", str), right=True, boring=("-",)),
            tables.Column(title="MEMORY FREE", value=_amount("memory", units.show_size), right=True, boring=("-",)),
            tables.Column(title="GPUS FREE", value=_amount("gpus", str), right=True, boring=("-",)),
            tables.Column(title="RUNS", value=lambda site: str(site["active_runs"]), right=True),
        ),
        sites,
    )


def _state(site: Site) -> str:
    if site["drained"]:
        return "drained"
    if not site["agents"]:
        return "no agent"
    states = {agent["state"] for agent in site["agents"]}
    return next(state for state in ("alive", "full", "unreachable") if state in states)


def _amount(kind: str, show: Callable[[int], str]) -> Callable[[Site], str]:
    def value(site: Site) -> str:
        """Nothing is said of a site whose slots nobody knows."""
        free, total = (
            sum(site_page.number(agent[which][kind]) for agent in site["agents"]) for which in ("free", "total")
        )
        return f"{show(free)} of {show(total)}" if total else "-"

    return value
