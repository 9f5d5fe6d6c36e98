"""`runyard site add`, `edit` and `remove`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from runyard import errors, settings
from runyard.cli import options, output, pairs
from runyard.client import Client
from runyard.client.client import quoted
from runyard.model.site import SiteSpec

OPTIONS = (
    click.option("--ssh", multiple=True, metavar="LOGIN",
                 help="Reach it by OpenSSH; several are tried in order. Of --kind ssh, each is a node."),
    click.option("--dir", metavar="DIR", help="A directory that its compute nodes see, for run directories."),
    click.option("--option", "options", multiple=True, metavar="K=V",
                 help="For its scheduler: account, queue …; for nodes: cpus, memory, gpus, or NODE.gpus …"),
    click.option("--setup", multiple=True, metavar="LINE", help="A shell line to run before each command, there."),
    click.option("-e", "--env", multiple=True, metavar="K=V", help="A default variable; a run's own wins."),
    click.option("--python", metavar="PATH", help="The interpreter for runners there (default: python3)."),
    click.option("--served-by", metavar="WHO", type=click.Choice(["yard", "agent"]),
                 help="yard: this yard's process serves it (default); agent: `runyard agent` elsewhere does."),
)  # fmt: skip
site_options = options.together(*OPTIONS)


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
    described = {"kind": kind, **description(given)}
    _check(name, SiteSpec.parse(described))
    site = Client().call("POST", "/sites", {"name": name, **described})
    output.writer(as_json).write(
        site, lambda _: click.echo(f"{name} is a site; check it with runyard site test {name}")
    )


@click.command("edit")
@click.argument("name")
@click.option("--kind", metavar="KIND", help="local, slurm, gridengine or ssh.")
@site_options
@output.json_option
def edit(name: str, kind: str | None, as_json: bool, **given: Any) -> None:
    """Change a site. `--option K=` removes an option; so does `--env K=` with a variable.

    The logins are replaced as a whole: a node of --kind ssh goes when only the others are named.
    """
    changes = {**({"kind": kind} if kind else {}), **description(given)}
    if not changes:
        raise errors.InvalidInput("nothing to change was named", "see `runyard site edit --help`")
    client = Client(start=False)
    _check(name, SiteSpec.parse(client.site(name)["config"]).edited(changes))
    site = client.call("PATCH", f"/sites/{quoted(name)}", changes, repeatable=True)
    output.writer(as_json).write(site, lambda _: click.echo(f"{name} is changed; what runs there goes on as it began"))


@click.command("remove")
@click.argument("name")
@output.json_option
def remove(name: str, as_json: bool) -> None:
    """Remove a site that has no unfinished runs; its ended runs stay."""
    Client(start=False).call("DELETE", f"/sites/{quoted(name)}")
    output.writer(as_json).write({"removed": name}, lambda _: click.echo(f"{name} is no site any more"))


def _check(name: str, described: SiteSpec) -> None:
    """What a scheduler is told is known to its backend only; a site that no agent could serve would just be silent."""
    from runyard.agent import sites

    sites.check(name, described, settings.load())


def description(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that were named on the command line."""
    found: dict[str, Any] = {name: given[name] for name in ("dir", "python", "served_by") if given[name] is not None}
    found.update({name: list(given[name]) for name in ("ssh", "setup") if given[name]})
    if given["options"]:
        found["options"] = pairs.options(given["options"])
    if given["env"]:
        found["env"] = pairs.variables(given["env"])
    return found
