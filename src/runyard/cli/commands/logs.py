"""`runyard logs`."""

from __future__ import annotations

import click

from runyard.cli.commands import drop_box
from runyard.cli.input import selection
from runyard.cli.show import failures, output, run_endings
from runyard.client import Client
from runyard.client.logs import Log


@click.command("logs")
@click.argument("run", required=False)
@click.option("-f", "--follow", is_flag=True, help="Follow the log until the run has finished.")
@click.option("-n", "--tail", type=click.IntRange(0), metavar="N", help="Only the last N lines, and new ones.")
@click.option("--attempt", type=click.IntRange(1), metavar="N", help="Only this attempt.")
@click.option("--stdout", "file", flag_value="stdout", help="Standard output only, of a run with --split-output.")
@click.option("--stderr", "file", flag_value="stderr", help="Standard error only, of a run with --split-output.")
@drop_box.option
@output.json_option
def command(
    run: str | None,
    follow: bool,
    tail: int | None,
    attempt: int | None,
    file: str | None,
    via_box: str | None,
    as_json: bool,
) -> int:
    """Print a run's log, or follow it live.

    RUN is a number or last (the default). Bytes are printed unchanged.
    """
    if via_box:
        drop_box.refuse({"tail": tail, "attempt": attempt, file or "file": file, "json": as_json})
        return drop_box.logs(via_box, run, follow=follow)
    client = Client(start=False)
    found = selection.one(client, [] if run is None else [run])
    log = Log(client=client, run=found.id, attempt=attempt, file=file or "log")
    if found.data["attempt"] == 0 and not found.final:
        output.remark(f"run {found.id} is {found.state} and has not started yet")
    offset = 0 if tail is None else log.tail_offset(tail)
    chunks = log.follow(offset) if follow else log.read(offset)
    try:
        if as_json:
            text = b"".join(chunks).decode("utf-8", "replace")
            document = {"id": found.id, "attempt": attempt, "file": log.file, "offset": offset, "text": text}
            output.writer(True).write(document, lambda console: None)
        else:
            run_endings.copy(chunks)
    except KeyboardInterrupt:
        return failures.INTERRUPTED
    return 0
