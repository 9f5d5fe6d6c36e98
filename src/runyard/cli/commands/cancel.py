"""`runyard cancel`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from runyard.cli.commands import drop_box
from runyard.cli.input import selection
from runyard.cli.show import change_report, failures, output, run_endings
from runyard.client import Client, Run, Sweep
from runyard.model import selectors
from runyard.model.spec import Stop


@click.command("cancel")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@selection.filter_options
@click.option("--no-wait", is_flag=True, help="Return as soon as the request is recorded.")
@drop_box.option
@output.quiet_option
@output.json_option
def command(runs: tuple[str, ...], no_wait: bool, via_box: str | None, quiet: bool, as_json: bool, **given: Any) -> int:
    """Cancel runs, and wait until all their processes have ended.

    RUN is a number, a range such as 3-9, a sweep (S1, or its name), or last. With --state, --project, --tag, … it means
    the runs that match and have not finished.
    """
    if via_box:
        drop_box.refuse(given)
        return drop_box.cancel(via_box, runs, output.writer(as_json, quiet))
    client = Client(start=False)
    found = selection.select(client, runs, given, states=selection.ACTIVE)
    sweeps = _end_sweeps(client, runs, given)
    alive = [run.id for run in found if not run.final]
    outcome = change_report.ChangeOutcome.split({run.id: run for run in found} | client.cancel(alive)).forgive_ended(
        client
    )
    stopping = [run for run in outcome.runs if not run.final]
    if stopping and not no_wait:
        interrupted = _wait(stopping, sweeps, quiet)
        if interrupted:
            return failures.INTERRUPTED
    return outcome.tell(output.writer(as_json, quiet), _sentence, "no runs to cancel")


def _end_sweeps(client: Client, words: Iterable[str], given: Mapping[str, Any]) -> list[Sweep]:
    """Sweeps named as a whole: they would replace cancelled runs by new ones."""
    if any(given[name] for name in selection.FILTERS):
        return []
    return [client.find_sweep(word).cancel(wait=False) for word in selectors.parse_selectors(words).sweeps]


def _wait(runs: list[Run], sweeps: list[Sweep], quiet: bool) -> bool:
    """True if the user interrupted the wait; the runs are cancelled all the same."""
    if not quiet:
        output.remark(_what_for(runs))
    try:
        run_endings.wait_all(runs)
        for sweep in sweeps:  # the yard records the end of a sweep after that of its last run
            sweep.wait()
    except KeyboardInterrupt:
        output.remark("\nno longer waiting; the runs are still being stopped: runyard ls --state active")
        return True
    return False


def _what_for(runs: list[Run]) -> str:
    if len(runs) > 1:
        return f"stopping {len(runs)} runs; waiting until all their processes have ended"
    run = runs[0]
    stop = Stop.parse(run.spec.get("stop", {}))
    how = f"SIG{stop.signal}, after {stop.grace}s SIGKILL" if run.state == "running" else f"it was {run.state}"
    return f"stopping run {run.id} ({how}); waiting until it has ended"


def _sentence(run: Run) -> str:
    if run.state == "cancelled":
        return f"run {run.id} cancelled"
    return f"run {run.id} is stopping" if not run.final else f"run {run.id} has already finished ({run.state})"
