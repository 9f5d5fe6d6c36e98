"""`runyard bridge`."""

from __future__ import annotations

import dataclasses
import os

import click

from runyard import errors, settings
from runyard.cli import output
from runyard.model.bridge import RODAN, RodanBridge
from runyard.settings import Settings


@click.group("bridge")
def command() -> None:
    """Take requests from other people's systems.

    A yard whose config.toml has the table of a bridge serves it by itself, as a daemon and from cron.
    """


@command.command("rodan")
@click.option("--credentials", metavar="FILE", help="The old credentials.env (default: the variables themselves).")
@click.option("--recipe", metavar="NAME", help="What requests start (default: rodan).")
@click.option("--check", "only_check", is_flag=True, help="Say what works and what does not, and start nothing.")
@output.json_option
def rodan(credentials: str | None, recipe: str | None, only_check: bool, as_json: bool) -> int:
    """Train for Rodan: start the yard, and take requests from hpc-jobs.

    RABBITMQ_HOST, RABBITMQ_USER, RABBITMQ_PASSWORD, RODAN_HOST, RODAN_USER and RODAN_PASSWORD say where and as whom.
    Each request starts the recipe, and is answered when its run is over, however that ends.

    It runs until Ctrl-C. Where nothing may stay running, write [bridge.rodan] into config.toml, and cron does the same
    with `runyard check`.
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
    from runyard.cli import checks, rodan_check, verdicts

    findings = rodan_check.examine(loaded)
    if as_json:
        found = list(findings)
        output.writer(as_json).write([dataclasses.asdict(finding) for finding in found], lambda _: None)
    else:
        found = checks.draw(output.console(), findings)
    return int(any(finding.verdict == verdicts.FAIL for finding in found))


def _serve(loaded: Settings, as_json: bool) -> None:
    from runyard.cli import daemon

    def tell(url: str) -> None:
        document = {"url": url, "home": str(loaded.home), "queue": loaded.bridge[RODAN].queue}
        said = f"taking requests from {document['queue']}; the yard is up: {url}"
        output.writer(as_json).write(document, lambda _: click.echo(said))

    try:
        daemon.run(loaded, port_chosen=daemon.port_was_chosen(loaded, None), on_listening=tell)
    except errors.HomeInUse as error:
        fix = f"let that one serve the bridge: write [bridge.rodan] into {loaded.home}/config.toml, and start it again"
        raise errors.HomeInUse(error.message, fix, elsewhere=error.elsewhere) from None
