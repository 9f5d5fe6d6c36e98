"""`runyard fetch`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from runyard.cli import output, selection, via
from runyard.client import Client, Output, Run
from runyard.model import globs, units

if TYPE_CHECKING:
    from runyard.client.saved import Checkpoint

T = TypeVar("T")


@click.command("fetch")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("-o", "--output", "directory", metavar="DIR", help="Where to put them (default: run-ID).")
@click.option("--glob", "patterns", metavar="GLOB", multiple=True, help="Only these, such as '*.csv' or 'models/**'.")
@click.option(
    "--checkpoints",
    type=click.Choice(["last", "all"]),
    help="Instead of outputs what it saved: the newest, or all that are kept.",
)
@via.option
@output.quiet_option
@output.json_option
def command(
    runs: tuple[str, ...],
    directory: str | None,
    patterns: tuple[str, ...],
    checkpoints: str | None,
    via_box: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Bring a run's outputs here, or its checkpoints.

    RUN is a number, a range such as 3-9, or last (which is meant when none is named). Of a run that goes on, they come
    as they are now. Files that are there already are not brought again, and a transfer that was cut goes on where it
    ended; several runs get a directory each. Each checkpoint has a folder of its own: run-ID/checkpoints/3.
    """
    if via_box:
        via.refuse({"glob": patterns, "checkpoints": checkpoints})
        via.fetch(via_box, runs, directory, output.writer(as_json, quiet))
        return
    client = Client(start=False)
    wanted = globs.pattern(globs.parse(patterns or ("**",), "--glob"))
    found = selection.select(client, runs or ("last",))
    bring = _fetch if checkpoints is None else functools.partial(_fetch_checkpoints, checkpoints)
    fetched = [bring(run, _target(run, directory, len(found) > 1), wanted, quiet or as_json) for run in found]
    paths = [path for _, several in fetched for path in several]
    output.writer(as_json, quiet).write(
        [{"id": run.id, "files": [str(path) for path in files]} for run, files in fetched],
        lambda console: _tell(fetched, patterns),
        paths,
    )


def _target(run: Run, directory: str | None, several: bool) -> Path:
    if directory is None:
        return Path(f"run-{run.id}")
    return Path(directory, f"run-{run.id}") if several else Path(directory)


def _fetch(run: Run, target: Path, wanted: str, quiet: bool) -> tuple[Run, list[Path]]:
    outputs = [item for item in _outputs(run) if re.fullmatch(wanted, item.path, re.DOTALL)]
    with output.progress(f"run {run.id}", sum(item.size for item in outputs), quiet=quiet) as advance:
        return run, run.fetch(target, outputs=outputs, progress=advance)


def _fetch_checkpoints(which: str, run: Run, target: Path, wanted: str, quiet: bool) -> tuple[Run, list[Path]]:
    from runyard.client import saved

    kept = saved.within_reach(run.id, _checkpoints(run))
    brought: list[Path] = []
    for checkpoint in kept[-1:] if which == "last" else kept:
        contents = saved.contents(run.client, checkpoint)
        files = [file for file in contents if re.fullmatch(wanted, file.path, re.DOTALL)]
        place, label = target / "checkpoints" / str(checkpoint.number), f"run {run.id}, checkpoint {checkpoint.number}"
        with output.progress(label, sum(file.size for file in files), quiet=quiet) as advance:
            brought += saved.bring(run.client, files, place, advance)
    return run, brought


def _checkpoints(run: Run) -> list[Checkpoint]:
    return run.checkpoints() if run.final else _current(run, run.current_checkpoints)


def _outputs(run: Run) -> list[Output]:
    return run.outputs() if run.final else _current(run, run.current_outputs)


def _current(run: Run, ask: Callable[[], tuple[list[T], bool]]) -> list[T]:
    with output.waiting(f"run {run.id} goes on: waiting for its site"):
        found, is_current = ask()
    if not is_current and run.refresh().state == "running":
        output.remark(f"run {run.id}: its site does not answer; these are of the last time it did")
    return found


def _tell(fetched: list[tuple[Run, list[Path]]], patterns: tuple[str, ...]) -> None:
    nothing = "has no outputs: a run keeps what it writes into $OUTPUT_DIR"
    if patterns:
        nothing = f"has nothing that is called {' or '.join(patterns)}"
    for run, files in fetched:
        if not files:
            output.remark(f"run {run.id} {nothing}")
            continue
        size = units.show_size(sum(path.stat().st_size for path in files))
        for path in files:
            click.echo(path)
        output.remark(f"run {run.id}: {len(files)} file{'s' if len(files) != 1 else ''}, {size}")
