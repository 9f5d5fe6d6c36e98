"""`runyard sweep cancel` and `runyard sweep retry`."""

from __future__ import annotations

import click

from runyard.cli.commands.sweep import views
from runyard.cli.show import failures, formats, output
from runyard.client import Client, Sweep
from runyard.client.sweep import FAILED


@click.command("cancel")
@click.argument("sweep")
@click.option("--no-wait", is_flag=True, help="Return at once, while its runs are being stopped.")
@output.json_option
def cancel(sweep: str, no_wait: bool, as_json: bool) -> int:
    """Cancel a sweep: no more trials are made, and its runs are cancelled."""
    found = Client(start=False).find_sweep(sweep)
    had_ended = found.final
    found.cancel(wait=False)
    try:
        if not no_wait:
            with output.waiting(f"waiting until all runs of sweep {found.label} have ended"):
                found.wait()
    except KeyboardInterrupt:
        output.remark(f"\nno longer waiting; sweep {found.label} is being stopped: runyard sweep show {found.label}")
        return failures.INTERRUPTED
    said = f"sweep {found.label} has already finished ({found.state})" if had_ended else views.sentence(found)
    output.writer(as_json).write(found.data, lambda console: click.echo(said))
    return 0


@click.command("retry", short_help="Queue failed runs of a sweep again.")
@click.argument("sweep")
@click.option("--state", "states", multiple=True, type=click.Choice(["failed", "cancelled"]), metavar="STATE",
              help="Which runs: failed (default) or cancelled. Repeatable.")  # fmt: skip
@output.json_option
def retry(sweep: str, states: tuple[str, ...], as_json: bool) -> None:
    """Queue failed runs of a sweep again, each with its own seed."""
    found = Client(notify=output.remark).find_sweep(sweep)
    retried = found.retry(states or FAILED)
    said = f"sweep {found.label}: {formats.count(retried, 'run')} queued again" if retried else _nothing(found, states)
    output.writer(as_json).write({"id": found.id, "retried": retried}, lambda _: click.echo(said))


def _nothing(sweep: Sweep, states: tuple[str, ...]) -> str:
    said = f"sweep {sweep.label}: nothing to retry, none of its runs is {' or '.join(states or FAILED)}"
    return f"{said}; to retry cancelled runs: --state cancelled" if sweep.data["runs"]["cancelled"] else said
