"""`runyard site add`, `edit` and `remove`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from runyard import errors
from runyard.cli.input import key_values, option_groups
from runyard.cli.show import output
from runyard.client import Client
from runyard.client.client import quoted
from runyard.model.site import SiteSpec

OPTIONS = (
    click.option("--ssh", multiple=True, metavar="LOGIN",
                 help="Login for OpenSSH; several are tried in order. With --kind ssh, each is a node."),
    click.option("--dir", metavar="DIR", help="Directory for run directories, visible to its compute nodes."),
    click.option("--option", "options", multiple=True, metavar="K=V",
                 help="For its scheduler: account, queue, …; for its nodes: cpus, memory, gpus, or NODE.gpus, …"),
    click.option("--setup", multiple=True, metavar="LINE", help="Shell line to run there before each command."),
    click.option("-e", "--env", multiple=True, metavar="K=V", help="Default variable; the run's own value wins."),
    click.option("--python", metavar="PATH", help="The interpreter for runners there (default: python3)."),
    click.option("--served-by", metavar="WHO", type=click.Choice(["yard", "agent"]),
                 help="yard: the yard's process serves it (default); agent: `runyard agent` serves it elsewhere."),
)  # fmt: skip
site_options = option_groups.together(*OPTIONS)


@click.command("add")
@click.argument("name")
@click.option("--kind", required=True, metavar="KIND", help="local, slurm, gridengine or ssh.")
@site_options
@output.json_option
def add(name: str, kind: str, as_json: bool, **given: Any) -> None:
    """Add a site: a cluster, or nodes that agents serve.

    \b
    runyard site add cedar --kind slurm --dir /scratch/me/runyard --option account=def-lab
    runyard site add msc --kind gridengine --option queue=cpu
    runyard site add boxes --kind ssh --ssh ada@hoff --ssh ada@norman --dir /var/tmp/runyard
    """
    from runyard.app import sites

    described = {"kind": kind, **description(given)}
    sites.check(name, SiteSpec.parse(described))
    site = Client().call("POST", "/sites", {"name": name, **described})
    output.writer(as_json).write(
        site, lambda _: click.echo(f"site {name} added; check it with runyard site test {name}")
    )


@click.command("edit")
@click.argument("name")
@click.option("--kind", metavar="KIND", help="local, slurm, gridengine or ssh.")
@site_options
@output.json_option
def edit(name: str, kind: str | None, as_json: bool, **given: Any) -> None:
    """Change a site. `--option K=` removes an option; so does `--env K=` with a variable.

    --ssh replaces all logins: with --kind ssh, a node that is not named is removed.
    """
    from runyard.app import sites

    changes = {**({"kind": kind} if kind else {}), **description(given)}
    if not changes:
        raise errors.InvalidInput("no change was given", "see `runyard site edit --help`")
    client = Client(start=False)
    sites.check(name, SiteSpec.parse(client.site(name)["config"]).edited(changes))
    site = client.call("PATCH", f"/sites/{quoted(name)}", changes, repeatable=True)
    output.writer(as_json).write(site, lambda _: click.echo(f"site {name} changed; running runs are not affected"))


@click.command("remove")
@click.argument("name")
@output.json_option
def remove(name: str, as_json: bool) -> None:
    """Remove a site without unfinished runs; its finished runs are kept."""
    Client(start=False).call("DELETE", f"/sites/{quoted(name)}")
    output.writer(as_json).write({"removed": name}, lambda _: click.echo(f"site {name} removed"))


def description(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that were given on the command line."""
    found: dict[str, Any] = {name: given[name] for name in ("dir", "python", "served_by") if given[name] is not None}
    found.update({name: list(given[name]) for name in ("ssh", "setup") if given[name]})
    if given["options"]:
        found["options"] = key_values.options(given["options"])
    if given["env"]:
        found["env"] = key_values.variables(given["env"])
    return found
