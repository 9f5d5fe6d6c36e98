"""`runyard agent`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from runyard import errors, settings
from runyard.cli.show import output
from runyard.client import Client, find_yard
from runyard.model.spec_values import name_text


@click.command("agent")
@click.option("--site", required=True, metavar="NAME", help="The site to serve; `submit --site NAME` sends runs to it.")
@click.option(
    "--dir", "directory", metavar="DIR", help="Directory for run directories (default: sites/NAME in the home)."
)
@click.option("--url", metavar="URL", help="The yard's address.  [RUNYARD_URL]")
@click.option("--token", metavar="TOKEN", help="Token with the role agent; prefer the variable.  [RUNYARD_TOKEN]")
@click.option(
    "--node", metavar="NAME", help="Name of this node for `submit --node` (default: host name).  [RUNYARD_NODE]"
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="K[=V]",
    help="A label of this machine, such as fast or rack=a. Repeatable.  [RUNYARD_LABELS]",
)
@click.option(
    "--only-project",
    "only_projects",
    multiple=True,
    metavar="P",
    help="Accept only runs of this project. Repeatable.  [RUNYARD_ONLY_PROJECTS]",
)
@click.option(
    "--only-user",
    "only_users",
    multiple=True,
    metavar="U",
    help="Accept only runs of this user. Repeatable.  [RUNYARD_ONLY_USERS]",
)
@click.option(
    "--spool",
    multiple=True,
    metavar="DIR",
    help="Serve this drop box, where users without a token submit runs. Repeatable.  [RUNYARD_SPOOL]",
)
@output.json_option
def command(
    site: str, directory: str | None, url: str | None, token: str | None, as_json: bool, **of_node: Any
) -> None:  # fmt: skip
    """Serve a site from this machine.

    It requests runs from the yard and executes them according to the site's kind: on this machine, or through the
    scheduler of the cluster whose login node this is. Ctrl-C stops the agent; running runs continue, and its next start
    finds them. The yard's admin creates the token: runyard token create NAME --role agent --site SITE
    """
    if name_text(site, "--site") == "local":
        raise errors.InvalidInput("the site 'local' is served by the yard itself", "choose another name")
    finder = find_yard.Finder.build(url, token, None, False, output.remark)
    target = finder.find()
    Client(target.url, target.token).health()  # a wrong address or token is an error here, not a line in a log
    place = Path(directory).expanduser().absolute() if directory else None
    _serve(_with_node(finder.settings, of_node), site, place, target, output.writer(as_json))


def _with_node(loaded: settings.Settings, given: Mapping[str, Any]) -> settings.Settings:
    """The settings, overridden by the node's options on the command line."""
    said = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items() if value}
    return settings.changed(loaded, said)


def _serve(
    loaded: settings.Settings, site: str, directory: Path | None, target: find_yard.Target, writer: output.OutputWriter
) -> None:
    from runyard.app import agent

    def tell(name: str) -> None:
        said = f"agent {name} serves {site} of {target.url}; Ctrl-C stops it"
        writer.write({"agent": name, "site": site, "url": target.url}, lambda console: output.remark(said))

    agent.serve(site, directory, target, loaded, tell, output.remark)
