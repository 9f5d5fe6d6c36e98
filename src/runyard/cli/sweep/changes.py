"""`runyard sweep cancel` and `runyard sweep retry`."""

from __future__ import annotations

import click

from runyard.cli import failures, output, words
from runyard.cli.sweep import views
from runyard.client import Client, Sweep
from runyard.client.sweep import FAILED


@click.command("cancel")
@click.argument("sweep")
@click.option("--no-wait", is_flag=True, help="Return at once, while its runs still stop.")
@output.json_option
def cancel(sweep: str, no_wait: bool, as_json: bool) -> int:
    """Stop a sweep: it makes no more trials, and its runs end."""
    found = Client(start=False).find_sweep(sweep)
    had_ended = found.final
    found.cancel(wait=False)
    try:
        if not no_wait:
            with output.waiting(f"waiting until nothing of sweep {found.label} runs"):
                found.wait()
    except KeyboardInterrupt:
        output.remark(f"\nsweep {found.label} is being stopped: runyard sweep show {found.label}")
        return failures.INTERRUPTED
    said = f"sweep {found.label} had ended: {found.state}" if had_ended else views.sentence(found)
    output.writer(as_json).write(found.data, lambda console: click.echo(said))
    return 0


@click.command("retry", short_help="Queue again those of its runs that failed.")
@click.argument("sweep")
@click.option("--state", "states", multiple=True, type=click.Choice(["failed", "cancelled"]), metavar="STATE",
              help="failed (default), cancelled: which of its runs. Repeatable.")  # fmt: skip
@output.json_option
def retry(sweep: str, states: tuple[str, ...], as_json: bool) -> None:
    """Queue those runs of a sweep again that have failed, each with the seed that it had."""
    found = Client(notify=output.remark).find_sweep(sweep)
    retried = found.retry(states or FAILED)
    said = f"sweep {found.label}: {words.count(retried, 'run')} queued again" if retried else _nothing(found, states)
    output.writer(as_json).write({"id": found.id, "retried": retried}, lambda _: click.echo(said))


def _nothing(sweep: Sweep, states: tuple[str, ...]) -> str:
    said = f"sweep {sweep.label}: there is nothing to run again, none of its runs is {' or '.join(states or FAILED)}"
    return f"{said}; for those that were cancelled: --state cancelled" if sweep.data["runs"]["cancelled"] else said
