"""`runyard bridge`."""

from __future__ import annotations

import dataclasses
import os

import click

from runyard import errors, settings
from runyard.cli.show import output
from runyard.model.bridge import RODAN, RodanBridge
from runyard.settings import Settings


@click.group("bridge")
def command() -> None:
    """Serve requests of other systems.

    A yard with a bridge's table in config.toml serves it by itself, as a daemon and from cron.
    """


@command.command("rodan")
@click.option("--credentials", metavar="FILE", help="File credentials.env (default: the environment variables).")
@click.option("--recipe", metavar="NAME", help="Recipe that requests start (default: rodan).")
@click.option("--check", "only_check", is_flag=True, help="Check the connection and the recipe; start nothing.")
@output.json_option
def rodan(credentials: str | None, recipe: str | None, only_check: bool, as_json: bool) -> int:
    """Train for Rodan: start the yard, and serve requests from the queue hpc-jobs.

    RABBITMQ_HOST, RABBITMQ_USER, RABBITMQ_PASSWORD, RODAN_HOST, RODAN_USER and RODAN_PASSWORD give the addresses and
    credentials. Each request starts the recipe, and gets a reply when its run has finished, also after a failure.

    It runs until Ctrl-C. Where no daemon is allowed, write [bridge.rodan] into config.toml, and call `runyard check`
    from cron.
    """
    loaded = _with_bridge(settings.load(), credentials, recipe)
    if only_check:
        return _check(loaded, as_json)
    _serve(loaded, as_json)
    return 0


def _with_bridge(loaded: Settings, credentials: str | None, recipe: str | None) -> Settings:
    bridge = loaded.bridge.get(RODAN, RodanBridge())
    if credentials is not None:
        bridge = dataclasses.replace(bridge, credentials=os.path.abspath(os.path.expanduser(credentials)))
    if recipe is not None:
        bridge = dataclasses.replace(bridge, recipe=recipe)
    return dataclasses.replace(loaded, bridge={RODAN: bridge})


def _check(loaded: Settings, as_json: bool) -> int:
    from runyard.cli.compat import rodan_check
    from runyard.cli.doctor import checks, verdicts

    findings = rodan_check.examine(loaded)
    if as_json:
        found = list(findings)
        output.writer(as_json).write([dataclasses.asdict(finding) for finding in found], lambda _: None)
    else:
        found = checks.draw(output.console(), findings)
    return int(any(finding.verdict == verdicts.FAIL for finding in found))


def _serve(loaded: Settings, as_json: bool) -> None:
    from runyard.app import daemon

    def tell(url: str) -> None:
        document = {"url": url, "home": str(loaded.home), "queue": loaded.bridge[RODAN].queue}
        said = f"serving requests from {document['queue']}; the yard is up: {url}"
        output.writer(as_json).write(document, lambda _: click.echo(said))

    try:
        daemon.run(loaded, port_chosen=daemon.port_was_chosen(loaded, None), on_listening=tell, notify=output.remark)
    except errors.HomeInUse as error:
        fix = f"let that yard serve the bridge: write [bridge.rodan] into {loaded.home}/config.toml, and restart it"
        raise errors.HomeInUse(error.message, fix, elsewhere=error.elsewhere) from None
