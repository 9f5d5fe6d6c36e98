"""`runyard down`."""

from __future__ import annotations

import os

import click

from runyard import errors, settings
from runyard.app import background
from runyard.cli.input import selection
from runyard.cli.show import output, run_endings
from runyard.client import Client


@click.command("down")
@click.option("--kill-runs", is_flag=True, help="Cancel all runs first, and wait until their processes have ended.")
@output.json_option
def command(kill_runs: bool, as_json: bool) -> None:
    """Stop the yard; its runs continue.

    Running runs continue, and the next `runyard up` finds them; queued runs wait for it.
    """
    if os.environ.get("RUNYARD_URL"):
        raise errors.InvalidInput(
            "RUNYARD_URL names another yard; down stops the one of this home", "unset RUNYARD_URL"
        )
    home = settings.find_home()
    address = background.owner(home)
    if address is None:
        document = {"stopped": False, "still_running": 0, "cancelled": 0}
        output.writer(as_json).write(document, lambda console: click.echo(f"no yard is running for {home}"))
        return
    client = Client(home=home, start=False)
    cancelled = _cancel_all(client) if kill_runs else 0
    running = _running(client)
    background.stop(address)
    document = {"stopped": True, "pid": address.pid, "still_running": running, "cancelled": cancelled}
    output.writer(as_json).write(document, lambda console: _tell(running, cancelled))


def _running(client: Client) -> int:
    """How many runs continue; None if the yard does not answer, and is stopped all the same."""
    try:
        counts = client.call("GET", "/health", timeout=background.HEALTH_TIMEOUT)["runs"]
    except errors.RunyardError:
        return 0
    return int(counts.get("running", 0) + counts.get("starting", 0))


def _cancel_all(client: Client) -> int:
    runs = list(client.iter_runs(state=selection.ACTIVE))
    if runs:
        output.remark(f"stopping {len(runs)} runs; waiting until all their processes have ended")
        client.cancel(run.id for run in runs)
        run_endings.wait_all([run.refresh() for run in runs])
    return len(runs)


def _tell(running: int, cancelled: int) -> None:
    click.echo("the yard is down" + (f"; {cancelled} runs were cancelled" if cancelled else ""))
    if running:
        output.remark(
            f"  {running} run{'s continue' if running != 1 else ' continues'}; runyard up -d finds them again"
        )
