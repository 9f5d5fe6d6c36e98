"""`runyard wait`."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import click

from runyard import errors
from runyard.cli.input import selection
from runyard.cli.show import output, run_endings
from runyard.client import Client, Sweep
from runyard.model import selectors, units


@click.command("wait")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@selection.filter_options
@click.option("--timeout", metavar="DURATION", help="Give up after this long, with exit code 124.")
@output.quiet_option
@output.json_option
def command(runs: tuple[str, ...], timeout: str | None, quiet: bool, as_json: bool, **given: Any) -> int:
    """Wait for runs to finish; exits with their exit code.

    RUN is a number, a range such as 3-9, a sweep (S1, or its name) with all runs that it will make, or last (the
    default). With --tag, --project, … it means all matching runs, including finished ones. The exit code is that of the
    first run that did not succeed: its command's own, or 200 cancelled, 201 timeout, 202 out of memory, 203 lost, 204
    another failure, 205 the yard does not answer.
    """
    client = Client(start=False)
    named = runs or (() if any(given.values()) else ("last",))
    deadline = None if timeout is None else time.monotonic() + float(units.parse_duration(timeout, "--timeout"))
    sweeps = [selection.sweep(client, word) for word in selectors.parse_selectors(named).sweeps]
    in_time = all([_wait_for_sweep(sweep, deadline) for sweep in sweeps])
    found = selection.select(client, named, given)
    if not found and in_time:
        _tell_of_none(given["state"])
    in_time = run_endings.wait_all(found, _left(deadline)) and in_time
    output.writer(as_json, quiet).write(
        [run.data for run in found] if len(found) != 1 else found[0].data,
        lambda console: run_endings.tell(found),
        [run.id for run in found],
    )
    return run_endings.first_code(run for run in found if run.final) if in_time else run_endings.NOT_YET


def _wait_for_sweep(sweep: Sweep, deadline: float | None) -> bool:
    """Until the sweep makes no more runs, which it may do gradually. False: the time is over."""
    with output.waiting(f"waiting for sweep {sweep.label}"):
        try:
            sweep.wait(_left(deadline))
        except TimeoutError:
            return False
    return True


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _tell_of_none(states: Iterable[str]) -> None:
    """Active runs may all have finished a moment ago: then there is nothing to wait for. Any other selection that
    matches no run is a mistake, and must not look like success."""
    if not states or not {*states} <= {*selection.ACTIVE, "active"}:
        raise errors.NotFound("no run matches", "runyard ls")
    output.remark("no runs to wait for")
