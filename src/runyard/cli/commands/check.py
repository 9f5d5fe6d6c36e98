"""`runyard check`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from runyard import errors
from runyard.cli.show import output
from runyard.client import find_yard


@click.command("check")
@click.option("--site", metavar="NAME", help="Serve only this site; required if the yard is on another machine.")
@click.option("--dir", "directory", metavar="DIR", help="Directory for run directories (default: the site's).")
@click.option("--crontab", is_flag=True, help="Print the line for `crontab -e`, and do nothing else.")
@click.option("--limit", type=float, default=50.0, metavar="SECONDS", help="Longest time to work (default 50).")
@click.option(
    "--ended", metavar="DIR", hidden=True, help="From a compute node: directory of the attempt that has ended."
)
@click.option("--probe", is_flag=True, hidden=True, help="From a compute node: report whether --ended would work.")
@output.json_option
def command(
    site: str | None, directory: str | None, crontab: bool, limit: float, ended: str | None, probe: bool, as_json: bool
) -> None:
    """Do one pass of the yard's work without a daemon: claim, submit, poll, upload, finish.

    For cron on machines where no daemon is allowed. It returns when there is nothing left to do now, and at once if a
    daemon or another check already serves this home.

    For a yard on another machine (`url` in config.toml, or RUNYARD_URL), it does one pass of `runyard agent`.
    """
    from runyard.app import check, tick

    finder = find_yard.Finder.build(None, None, None, False, output.remark)
    place = Path(directory).expanduser().absolute() if directory else None
    if finder.url and site is None:
        raise errors.InvalidInput(f"the yard at {finder.url} has its own agents", "name the site to serve: --site NAME")
    if place and not finder.url:
        raise errors.InvalidInput("--dir needs a yard on another machine", "use runyard site edit NAME --dir DIR")
    if crontab:
        line = _crontab_line(finder, site, place)
        output.writer(as_json).write({"crontab": line}, lambda _: click.echo(line))
        return
    asked = tick.Tick.build(site, place, limit, ended)
    done = check.look(finder, asked) if probe else check.do(finder, asked)
    if as_json:
        output.writer(as_json).write(done, lambda _: None)
    elif done["message"]:
        output.remark(done["message"])


def _crontab_line(finder: find_yard.Finder, site: str | None, directory: Path | None) -> str:
    """The whole line: cron passes almost no environment, and reads a percent sign as the end of the line."""
    from runyard.app import node_relay

    if finder.url:
        _refuse_passing_secrets(finder)
    line = f"{node_relay.variables(finder.settings)} {node_relay.command(site, directory)}"
    return "* * * * * " + line.replace("%", r"\%")


def _refuse_passing_secrets(finder: find_yard.Finder) -> None:
    """Cron sets neither RUNYARD_URL nor RUNYARD_TOKEN, and a token must not be written into a crontab."""
    loaded = finder.settings
    if loaded.url != finder.url or not loaded.token_file.exists():
        fix = (
            f'write `url = "{finder.url}"` into {os.fspath(loaded.home / "config.toml")} '
            f"and the token into {os.fspath(loaded.token_file)} (chmod 600)"
        )
        raise errors.ConfigError("cron sets neither RUNYARD_URL nor RUNYARD_TOKEN", fix)
    find_yard.refuse_open_token(loaded.home)
