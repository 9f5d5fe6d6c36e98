"""`runyard up`."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from runyard import errors, home, settings
from runyard.app import background
from runyard.cli.show import output


@click.command("up")
@click.option("-d", "--detach", is_flag=True, help="Start it in the background, and return when it answers.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 chooses a free one.  [RUNYARD_PORT]")
@click.option("--host", metavar="ADDRESS", help="Address to listen on (default 127.0.0.1).  [RUNYARD_HOST]")
@click.option("--reload", is_flag=True, help="Restart when the source or config.toml changes (for development).")
@click.option("--attached", is_flag=True, hidden=True, help="End with the command that started it.")
@output.json_option
def command(detach: bool, port: int | None, host: str | None, reload: bool, attached: bool, as_json: bool) -> None:
    """Start the yard.

    It runs until Ctrl-C or `runyard down`; runs continue without it, and the next start finds them. It keeps all its
    files in its home directory, RUNYARD_HOME.
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
    """For a client that started the yard of its home: it reads the address from the first line."""
    from runyard.app import daemon

    daemon.run_attached(loaded, on_listening=lambda url: click.echo(url))


def _options(chosen: dict[str, Any]) -> list[str]:
    return [word for name, value in chosen.items() for word in (f"--{name}", str(value))]


def _reload(loaded: settings.Settings, chosen: dict[str, Any], detach: bool, as_json: bool) -> None:
    from runyard.app import reload

    if detach:
        raise errors.InvalidInput("--reload is for a terminal, --detach for the background", "give one of them")
    reload.run(loaded, [*_options(chosen), *(["--json"] if as_json else [])], output.remark)


def _start(loaded: settings.Settings, options: list[str], writer: output.OutputWriter) -> None:
    home.refuse_daemon(loaded)
    home.prepare(loaded)
    address = background.start(loaded, options)
    document = {"url": address.url, "pid": address.pid, "version": address.version, "home": str(loaded.home)}

    def draw(console: Any) -> None:
        click.echo(f"the yard is up: {address.url}")
        output.remark(f"  home {loaded.home}, process {address.pid}; runyard down stops it")

    writer.write(document, draw)


def _serve(loaded: settings.Settings, port: int | None, writer: output.OutputWriter) -> None:
    from runyard.app import daemon

    def tell(url: str) -> None:
        document = {"url": url, "home": str(loaded.home)}
        writer.write(document, lambda console: click.echo(f"the yard is up: {url}"))
        output.remark(f"  home {loaded.home}; Ctrl-C stops it, and its runs continue")

    daemon.run(loaded, port_chosen=daemon.port_was_chosen(loaded, port), on_listening=tell, notify=output.remark)
    output.remark("the yard is down; running runs continue")
