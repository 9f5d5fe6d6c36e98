"""`runyard fetch`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from runyard.cli.commands import drop_box
from runyard.cli.input import selection
from runyard.cli.show import output
from runyard.client import Client, Output, Run
from runyard.model import globs, units

if TYPE_CHECKING:
    from runyard.client.checkpoints import SavedCheckpoint

T = TypeVar("T")


@click.command("fetch")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("-o", "--output", "directory", metavar="DIR", help="Directory to write them to (default: run-ID).")
@click.option("--glob", "patterns", metavar="GLOB", multiple=True, help="Only these, such as '*.csv' or 'models/**'.")
@click.option(
    "--checkpoints",
    type=click.Choice(["last", "all"]),
    help="Fetch checkpoints instead of outputs: the newest, or all that are kept.",
)
@drop_box.option
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
    """Download a run's outputs or checkpoints.

    RUN is a number, a range such as 3-9, or last (the default). From a running run, it downloads the current contents.
    Files that exist here already are not downloaded again, and an interrupted transfer resumes; several runs get one
    directory each. Each checkpoint has its own directory: run-ID/checkpoints/3.
    """
    if via_box:
        drop_box.refuse({"glob": patterns, "checkpoints": checkpoints})
        drop_box.fetch(via_box, runs, directory, output.writer(as_json, quiet))
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
    from runyard.client import checkpoints

    kept = checkpoints.within_reach(run.id, _checkpoints(run))
    brought: list[Path] = []
    for checkpoint in kept[-1:] if which == "last" else kept:
        contents = checkpoints.contents(run.client, checkpoint)
        files = [file for file in contents if re.fullmatch(wanted, file.path, re.DOTALL)]
        place, label = target / "checkpoints" / str(checkpoint.number), f"run {run.id}, checkpoint {checkpoint.number}"
        with output.progress(label, sum(file.size for file in files), quiet=quiet) as advance:
            brought += checkpoints.bring(run.client, files, place, advance)
    return run, brought


def _checkpoints(run: Run) -> list[SavedCheckpoint]:
    return run.checkpoints() if run.final else _current(run, run.current_checkpoints)


def _outputs(run: Run) -> list[Output]:
    return run.outputs() if run.final else _current(run, run.current_outputs)


def _current(run: Run, ask: Callable[[], tuple[list[T], bool]]) -> list[T]:
    with output.waiting(f"run {run.id} is running: waiting for its site"):
        found, is_current = ask()
    if not is_current and run.refresh().state == "running":
        output.remark(f"run {run.id}: its site does not answer; these are the outputs it uploaded last")
    return found


def _tell(fetched: list[tuple[Run, list[Path]]], patterns: tuple[str, ...]) -> None:
    nothing = "has no outputs: only files in $OUTPUT_DIR are kept"
    if patterns:
        nothing = f"has no files that match {' or '.join(patterns)}"
    for run, files in fetched:
        if not files:
            output.remark(f"run {run.id} {nothing}")
            continue
        size = units.show_size(sum(path.stat().st_size for path in files))
        for path in files:
            click.echo(path)
        output.remark(f"run {run.id}: {len(files)} file{'s' if len(files) != 1 else ''}, {size}")
