"""Waiting for runs: what is printed when they finish, and the exit code."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence

import click

from runyard.cli.show import failures, formats, output
from runyard.client import Run
from runyard.model import exit_codes

NOT_YET = 124  # as for timeout(1)


def follow(run: Run, *, to_stderr: bool = False) -> int:
    """Print the log live, then how the run ended. Ctrl-C leaves the run running."""
    try:
        copy(run.follow(), to_stderr=to_stderr)
        run.wait()
    except KeyboardInterrupt:
        output.remark(f"\nrun {run.id} continues: runyard logs {run.id} -f, or runyard cancel {run.id}")
        return failures.INTERRUPTED
    if run.state != "succeeded":
        output.remark(sentence(run))
    return code(run)


def copy(chunks: Iterable[bytes], *, to_stderr: bool = False) -> None:
    """Bytes unchanged: a log need not be text."""
    target = sys.stderr if to_stderr else sys.stdout
    target.flush()
    for chunk in chunks:
        target.buffer.write(chunk)
        target.buffer.flush()


def wait_all(runs: Sequence[Run], timeout: float | None = None) -> bool:
    """Wait for each; False if the time is over first."""
    deadline = None if timeout is None else time.monotonic() + timeout
    for run in runs:
        if run.final:
            continue
        with output.waiting(f"waiting for run {run.id}, {run.state}"):
            try:
                run.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
            except TimeoutError:
                return False
    return True


def sentence(run: Run) -> str:
    """`run 42 failed after 3m12s: error: exit code 3`."""
    lasted = f" after {formats.elapsed(run.data)}" if run.started_at else ""
    note = formats.note(run.data)
    return f"run {run.id} {run.state}{lasted}" + (f": {note}" if note else "")


def tell(runs: Iterable[Run]) -> None:
    for run in runs:
        click.echo(sentence(run) if run.final else f"run {run.id} is still {run.state}")


def code(run: Run) -> int:
    return exit_codes.wait_code(run.state, run.reason, run.exit_code)


def first_code(runs: Iterable[Run]) -> int:
    """Exit code of the first run that did not succeed, in the order given."""
    return next((number for number in map(code, runs) if number), 0)
