"""`runyard rerun`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from runyard import errors
from runyard.cli.input import key_values, selection
from runyard.cli.input.spec_options import rerun_options
from runyard.cli.show import output
from runyard.cli.show.submitted_runs import Telling
from runyard.client import Client, Run
from runyard.model import ranges


@click.command("rerun")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--set", "changes", multiple=True, metavar="K=V", help="Change a parameter. Repeatable.")
@rerun_options
@click.option("--follow", is_flag=True, help="Print the log live; exit with the run's exit code.")
@click.option("--wait", is_flag=True, help="Wait for the run to finish; exit with its exit code.")
@output.quiet_option
@output.json_option
def command(
    runs: tuple[str, ...], changes: tuple[str, ...], follow: bool, wait: bool, quiet: bool, as_json: bool, **given: Any
) -> int:
    """Submit copies of runs as new runs.

    RUN is a number, a range such as 3-9, or last. The copy has the parameters, seed, resources, site and the snapshots
    of code and data of the original, even if the directories have changed since. A notice names what was not kept and
    is used as it is now: code without a snapshot, data by path, and the site's Python packages unless the environment
    is built. Several runs are accepted together or not at all.

    \b
      runyard rerun 42
      runyard rerun 42 --set lr=0.2 --set model.depth=4 --seed 7
    """
    telling = Telling(as_json=as_json, quiet=quiet, wait=wait, follow=follow)
    client = Client(notify=output.remark)
    found = selection.select(client, runs)
    telling.check(len(found) > 1)
    made = client.rerun((run.id for run in found), params=dict(map(_change, changes)), **given)
    _tell_notes(made)
    return telling.tell(made, len(made) > 1)


def _tell_notes(runs: Iterable[Run]) -> None:
    """Each notice once, with the runs it applies to."""
    ids: dict[str, list[int]] = {}
    for run in runs:
        for note in run.notes or ():
            ids.setdefault(note, []).append(run.id)
    for note, numbers in ids.items():
        output.remark(f"run {ranges.show(numbers)}: {note}")


def _change(word: str) -> tuple[str, Any]:
    name, equals, text = word.partition("=")
    if not name or not equals:
        raise errors.InvalidInput(f"--set: {word!r} changes no parameter", "write it like lr=0.2")
    return name, key_values.value(text)
