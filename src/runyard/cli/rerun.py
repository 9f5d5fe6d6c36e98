"""`runyard rerun`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from runyard import errors
from runyard.cli import output, pairs, selection
from runyard.cli.submitted import Telling
from runyard.client import Client, Run
from runyard.model import ranges


@click.command("rerun")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--set", "changes", multiple=True, metavar="K=V", help="Another value of a parameter. Repeatable.")
@click.option("--seed", type=int, metavar="N", help="Another random seed.")
@click.option("--site", metavar="NAME", help="Another site.")
@click.option(
    "--python-env", type=click.Choice(["sync"]), metavar="sync",
    help="Build the Python environment that was only recorded.",
)  # fmt: skip
@click.option("--follow", is_flag=True, help="Print the log as it comes; exit as the run does.")
@click.option("--wait", is_flag=True, help="Return when it has ended; exit as the run does.")
@output.quiet_option
@output.json_option
def command(
    runs: tuple[str, ...], changes: tuple[str, ...], follow: bool, wait: bool, quiet: bool, as_json: bool, **given: Any
) -> int:
    """Start runs again as new ones, as they were.

    RUN is a number, a range such as 3-9, or last. Parameters, seed, resources and site are those of the first run, and
    so are the snapshots of code and data, whatever has become of the folders since. What was not kept is as it is now,
    and is told: code of a run without a snapshot, data by its path, and the Python packages of the site unless the
    environment is built. Several are accepted together or not at all.

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
    """Each once, with the runs that it is true of."""
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
    return name, pairs.value(text)
