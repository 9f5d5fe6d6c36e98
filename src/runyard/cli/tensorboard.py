"""`runyard tensorboard`."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from runyard import errors
from runyard.cli import output, selection, viewer, words
from runyard.client import Client, Run, event_files
from runyard.client.event_files import EventFiles
from runyard.model import units

PATIENCE = 5  # a pass that took long is followed by a pause of so many times as long: sites have other things to do
LONGEST_KEY = 60


@click.command("tensorboard")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@selection.filter_options
@click.option(
    "--port", type=click.IntRange(1, 65535), metavar="N", help="Where it answers (default: 6006 or the next)."
)
@click.option("--every", default="10s", show_default=True, metavar="DURATION", help="How often to look for new points.")
@click.option("--logdir-only", is_flag=True, help="Bring the event files once, print their folder, and return.")
@output.json_option
def command(runs: tuple[str, ...], port: int | None, every: str, logdir_only: bool, as_json: bool, **given: Any) -> int:
    """Open TensorBoard on runs, also while they run.

    RUN is a number, a range such as 3-9, or last; with --project, --tag, … it means the runs that match, also those
    that come later. Event files below their output directories are brought here as they grow, wherever the runs run.
    Ctrl-C ends it.

    \b
      runyard tensorboard 42 57
      runyard tensorboard --project digits --state active
    """
    pause = units.parse_duration(every, "--every")
    program = [] if logdir_only else viewer.find()
    client = Client(start=False)
    found = selection.select(client, runs, given)
    with event_files.opened(client, _folder(client, runs, given)) as files:
        files.keep_only(found)
        with output.waiting("bringing event files"):
            count = files.sync(found, wait=True)
        if logdir_only:
            _tell(files, found, count, as_json, None)
            return 0
        with viewer.Viewer(program, files.root, port, pause) as shown:
            _tell(files, found, count, as_json, shown.url)
            return _follow(shown, files, lambda: selection.select(client, runs, given), pause)


def _folder(client: Client, runs: tuple[str, ...], given: Mapping[str, Any]) -> Path:
    """One for each choice of runs: TensorBoard shows all that is below it."""
    text = " ".join([*runs, *selection.as_words(given)])
    key = re.sub(r"[^\w.,-]+", "-", text).strip("-.")
    if len(key) > LONGEST_KEY:
        key = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return client.home / "tensorboard" / key


def _tell(files: EventFiles, found: list[Run], count: int, as_json: bool, url: str | None) -> None:
    document = {"logdir": str(files.root), "url": url, "runs": [run.id for run in found], "files": count}
    output.writer(as_json).write(document, lambda console: click.echo(url or files.root))
    if not count:
        output.remark("no event files yet: a run writes them below $OUTPUT_DIR")
    elif url:
        output.remark(f"{words.count(len(found), 'run')}, {words.count(count, 'event file')}; Ctrl-C ends it")


def _follow(shown: viewer.Viewer, files: EventFiles, select: Callable[[], list[Run]], every: float) -> int:
    """Until the program or the person ends it. A yard that is away for a while is waited for."""
    pause, said = every, ""
    try:
        while not shown.wait(pause):
            began = time.monotonic()
            trouble = _trouble(files, select)
            if trouble not in ("", said):
                output.remark(trouble)
            pause, said = max(every, PATIENCE * (time.monotonic() - began)), trouble
    except KeyboardInterrupt:
        return 0
    return shown.code


def _trouble(files: EventFiles, select: Callable[[], list[Run]]) -> str:
    try:
        files.sync(select(), wait=False)
    except errors.RunyardError as error:
        return error.message
    return ""
