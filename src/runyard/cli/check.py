"""`runyard check`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from runyard import errors
from runyard.cli import output
from runyard.client import locate


@click.command("check")
@click.option("--site", metavar="NAME", help="Serve only this site; needed where the yard is elsewhere.")
@click.option("--dir", "directory", metavar="DIR", help="Where runs are kept (default: as the site is described).")
@click.option("--crontab", is_flag=True, help="Print the line for `crontab -e`, and do nothing else.")
@click.option("--limit", type=float, default=50.0, metavar="SECONDS", help="Longest time to work (default 50).")
@click.option("--ended", metavar="DIR", hidden=True, help="From a compute node: the attempt that is over.")
@click.option("--probe", is_flag=True, hidden=True, help="From a compute node: say whether --ended would work.")
@output.json_option
def command(
    site: str | None, directory: str | None, crontab: bool, limit: float, ended: str | None, probe: bool, as_json: bool
) -> None:
    """Do what a yard's daemon does, once: take work, submit, poll, relay, finish.

    For cron on a machine where nothing may stay running. It ends when there is nothing left to do now. Where a daemon
    or another check has this home, it leaves the work to that one.

    With a yard elsewhere (`url` in config.toml, or RUNYARD_URL), it does what `runyard agent --site NAME` does, once.
    """
    from runyard.cli import ticks

    finder = locate.Finder.build(None, None, None, False, output.remark)
    place = Path(directory).expanduser().absolute() if directory else None
    if finder.url and site is None:
        raise errors.InvalidInput(
            f"the yard at {finder.url} has its own agents", "say which site is served: --site NAME"
        )
    if place and not finder.url:
        raise errors.InvalidInput("--dir is for a site of a yard elsewhere", "use runyard site edit NAME --dir DIR")
    if crontab:
        line = _crontab_line(finder, site, place)
        output.writer(as_json).write({"crontab": line}, lambda _: click.echo(line))
        return
    tick = ticks.Tick.build(site, place, limit, ended)
    done = ticks.look(finder, tick) if probe else ticks.do(finder, tick)
    if as_json:
        output.writer(as_json).write(done, lambda _: None)
    elif done["message"]:
        output.remark(done["message"])


def _crontab_line(finder: locate.Finder, site: str | None, directory: Path | None) -> str:
    """Complete: cron gives its commands next to no environment, and takes a percent sign for the end of the line."""
    from runyard.cli import node_relay

    if finder.url:
        _refuse_passing_secrets(finder)
    line = f"{node_relay.variables(finder.settings)} {node_relay.command(site, directory)}"
    return "* * * * * " + line.replace("%", r"\%")


def _refuse_passing_secrets(finder: locate.Finder) -> None:
    """Cron has neither RUNYARD_URL nor RUNYARD_TOKEN, and a crontab is no place for a token."""
    loaded = finder.settings
    if loaded.url != finder.url or not loaded.token_file.exists():
        fix = (
            f'write `url = "{finder.url}"` into {os.fspath(loaded.home / "config.toml")} '
            f"and the token into {os.fspath(loaded.token_file)} (chmod 600)"
        )
        raise errors.ConfigError("cron has no RUNYARD_URL and no RUNYARD_TOKEN", fix)
    locate.refuse_open_token(loaded.home)
