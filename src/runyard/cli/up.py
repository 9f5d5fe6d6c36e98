"""`runyard up`."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from runyard import errors, home, settings
from runyard.cli import detached, output


@click.command("up")
@click.option("-d", "--detach", is_flag=True, help="Start it in the background, and return when it answers.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 takes any free one.  [RUNYARD_PORT]")
@click.option("--host", metavar="ADDRESS", help="Address to listen on (default 127.0.0.1).  [RUNYARD_HOST]")
@click.option("--reload", is_flag=True, help="Start it anew when its source or config.toml changes: for development.")
@click.option("--attached", is_flag=True, hidden=True, help="End with the command that started it.")
@output.json_option
def command(detach: bool, port: int | None, host: str | None, reload: bool, attached: bool, as_json: bool) -> None:
    """Start the yard.

    It runs until Ctrl-C or `runyard down`; runs go on without it, and are found again at the next start. Everything it
    keeps lies in its home directory, RUNYARD_HOME.
    """
    chosen: dict[str, Any] = {name: value for name, value in (("port", port), ("host", host)) if value is not None}
    loaded = dataclasses.replace(settings.load(), **chosen)
    writer = output.writer(as_json)
    if attached:
        _serve_attached(loaded)
    elif reload:
        _reload(loaded, chosen, detach, as_json)
    elif detach:
        _start(loaded, _options(chosen), writer)
    else:
        _serve(loaded, port, writer)


def _serve_attached(loaded: settings.Settings) -> None:
    """For the client of a home without a daemon: it reads the address from our first line."""
    from runyard.cli import daemon

    daemon.run_attached(loaded, on_listening=lambda url: click.echo(url))


def _options(chosen: dict[str, Any]) -> list[str]:
    return [word for name, value in chosen.items() for word in (f"--{name}", str(value))]


def _reload(loaded: settings.Settings, chosen: dict[str, Any], detach: bool, as_json: bool) -> None:
    from runyard.cli import reload

    if detach:
        raise errors.InvalidInput("--reload is for a terminal, --detach for the background", "give one of them")
    reload.run(loaded, [*_options(chosen), *(["--json"] if as_json else [])])


def _start(loaded: settings.Settings, options: list[str], writer: output.Writer) -> None:
    home.refuse_daemon(loaded)
    home.prepare(loaded)
    address = detached.start(loaded, options)
    document = {"url": address.url, "pid": address.pid, "version": address.version, "home": str(loaded.home)}

    def draw(console: Any) -> None:
        click.echo(f"the yard is up: {address.url}")
        output.remark(f"  home {loaded.home}, process {address.pid}; runyard down stops it")

    writer.write(document, draw)


def _serve(loaded: settings.Settings, port: int | None, writer: output.Writer) -> None:
    from runyard.cli import daemon

    def tell(url: str) -> None:
        document = {"url": url, "home": str(loaded.home)}
        writer.write(document, lambda console: click.echo(f"the yard is up: {url}"))
        output.remark(f"  home {loaded.home}; Ctrl-C stops it, and its runs go on")

    daemon.run(loaded, port_chosen=daemon.port_was_chosen(loaded, port), on_listening=tell)
    output.remark("the yard is down; runs that were running go on")
