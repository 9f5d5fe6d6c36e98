"""`runyard cancel`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from runyard.cli import changes, endings, failures, output, selection, via
from runyard.client import Client, Run
from runyard.model import selectors
from runyard.model.spec import Stop


@click.command("cancel")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@selection.filter_options
@click.option("--no-wait", is_flag=True, help="Return as soon as the wish is recorded.")
@via.option
@output.quiet_option
@output.json_option
def command(runs: tuple[str, ...], no_wait: bool, via_box: str | None, quiet: bool, as_json: bool, **given: Any) -> int:
    """Stop runs, and wait until nothing of them is left.

    RUN is a number, a range such as 3-9, a sweep (S1, or its name), or last. With --state, --project, --tag, … it means
    the runs that match and have not ended.
    """
    if via_box:
        via.refuse(given)
        return via.cancel(via_box, runs, output.writer(as_json, quiet))
    client = Client(start=False)
    found = selection.select(client, runs, given, states=selection.ACTIVE)
    _end_sweeps(client, runs, given)
    alive = [run.id for run in found if not run.final]
    outcome = changes.Outcome.split({run.id: run for run in found} | client.cancel(alive)).forgive_ended(client)
    stopping = [run for run in outcome.runs if not run.final]
    if stopping and not no_wait:
        interrupted = _wait(stopping, quiet)
        if interrupted:
            return failures.INTERRUPTED
    return outcome.tell(output.writer(as_json, quiet), _sentence, "no runs to cancel")


def _end_sweeps(client: Client, words: Iterable[str], given: Mapping[str, Any]) -> None:
    """Those that are named as a whole: they would make other runs in the places of those that end."""
    if not any(given[name] for name in selection.FILTERS):
        for word in selectors.parse_selectors(words).sweeps:
            client.find_sweep(word).cancel(wait=False)


def _wait(runs: list[Run], quiet: bool) -> bool:
    """True when the person did not want to wait; the wish stands."""
    if not quiet:
        output.remark(_what_for(runs))
    try:
        endings.wait_all(runs)
    except KeyboardInterrupt:
        output.remark("\nthey are still being stopped; runyard ls --state active shows how far it is")
        return True
    return False


def _what_for(runs: list[Run]) -> str:
    if len(runs) > 1:
        return f"asked {len(runs)} runs to stop; waiting until nothing of them is left"
    run = runs[0]
    stop = Stop.parse(run.spec.get("stop", {}))
    how = f"SIG{stop.signal}, after {stop.grace}s SIGKILL" if run.state == "running" else f"it was {run.state}"
    return f"asked run {run.id} to stop ({how}); waiting for its end"


def _sentence(run: Run) -> str:
    if run.state == "cancelled":
        return f"run {run.id} cancelled"
    return f"run {run.id} is stopping" if not run.final else f"run {run.id} had ended: {run.state}"
