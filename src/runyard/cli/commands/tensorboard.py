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
from runyard.cli.input import selection
from runyard.cli.show import formats, output, tensorboard_process
from runyard.client import Client, Run, event_files
from runyard.client.event_files import EventFiles
from runyard.model import units

PATIENCE = 5  # the pause after a pass is so many times as long as the pass, to spare the sites
LONGEST_KEY = 60


@click.command("tensorboard")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@selection.filter_options
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    metavar="N",
    help="Port to listen on (default: the first free one from 6006).",
)
@click.option("--every", default="10s", show_default=True, metavar="DURATION", help="How often to look for new values.")
@click.option("--logdir-only", is_flag=True, help="Download the event files once, print their directory, and return.")
@output.json_option
def command(runs: tuple[str, ...], port: int | None, every: str, logdir_only: bool, as_json: bool, **given: Any) -> int:
    """Open TensorBoard on runs, also while they run.

    RUN is a number, a range such as 3-9, or last; with --project, --tag, … it means all matching runs, including new
    ones. Event files below their output directories are downloaded as they grow, from any site. Ctrl-C stops it.

    \b
      runyard tensorboard 42 57
      runyard tensorboard --project digits --state active
    """
    pause = units.parse_duration(every, "--every")
    program = [] if logdir_only else tensorboard_process.find()
    client = Client(start=False)
    found = selection.select(client, runs, given)
    with event_files.opened(client, _folder(client, runs, given)) as files:
        files.keep_only(found)
        with output.waiting("downloading event files"):
            count = files.sync(found, wait=True)
        if logdir_only:
            _tell(files, found, count, as_json, None)
            return 0
        with tensorboard_process.Viewer(program, files.root, port, pause) as shown:
            _tell(files, found, count, as_json, shown.url)
            return _follow(shown, files, lambda: selection.select(client, runs, given), pause)


def _folder(client: Client, runs: tuple[str, ...], given: Mapping[str, Any]) -> Path:
    """One directory per selection of runs: TensorBoard shows everything below it."""
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
        output.remark(f"{formats.count(len(found), 'run')}, {formats.count(count, 'event file')}; Ctrl-C stops it")


def _follow(shown: tensorboard_process.Viewer, files: EventFiles, select: Callable[[], list[Run]], every: float) -> int:
    """Until TensorBoard or the user ends it. A yard that does not answer is asked again."""
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
