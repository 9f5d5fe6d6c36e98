"""`runyard site`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from runyard.cli.commands import site_changes, site_test
from runyard.cli.input.command_groups import BareGroup
from runyard.cli.show import output, site_page
from runyard.client import Client
from runyard.client.client import quoted
from runyard.model import units

Site = Mapping[str, Any]


@click.group("site", cls=BareGroup, bare="list")
def command() -> None:
    """Add, list, show, change, drain and remove sites.

    A site is where runs execute: a machine, nodes or a cluster; `local` is the yard's machine. Without a subcommand it
    lists the sites.
    """


for part in (site_changes.add, site_changes.edit, site_changes.remove, site_test.test):
    command.add_command(part)


@command.command("list")
@output.quiet_option
@output.json_option
def list_sites(quiet: bool, as_json: bool) -> None:
    """List sites with their capacity and what is free."""
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
    """Show a site: its nodes, their free resources and their runs."""
    site = Client(start=False).site(name)

    def draw(console: Any) -> None:
        site_page.draw(console, site, table([site]))

    output.writer(as_json).write(site, draw)


@command.command("drain")
@click.argument("name")
@output.json_option
def drain(name: str, as_json: bool) -> None:
    """Start no new runs at a site; its running runs continue."""
    _change(name, "drain", as_json, f"site {name} starts no new runs; runyard site resume {name} undoes this")


@command.command("resume")
@click.argument("name")
@output.json_option
def resume(name: str, as_json: bool) -> None:
    """Start runs at a drained site again."""
    _change(name, "resume", as_json, f"site {name} starts runs again")


def _change(name: str, verb: str, as_json: bool, said: str) -> None:
    site = Client(start=False).call("POST", f"/sites/{quoted(name)}/{verb}", repeatable=True)
    output.writer(as_json).write(site, lambda console: click.echo(said))


def table(sites: list[Any]) -> Any:
    from runyard.cli.show import tables

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
        """`-` for a site whose capacity is unknown."""
        free, total = (
            sum(site_page.number(agent[which][kind]) for agent in site["agents"]) for which in ("free", "total")
        )
        return f"{show(free)} of {show(total)}" if total else "-"

    return value
