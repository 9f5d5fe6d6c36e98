"""`runyard logs`."""

from __future__ import annotations

import click

from runyard.cli import endings, failures, output, selection, via
from runyard.client import Client
from runyard.client.logs import Log


@click.command("logs")
@click.argument("run", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on until the run has ended.")
@click.option("-n", "--tail", type=click.IntRange(0), metavar="N", help="Only the last N lines, and what follows.")
@click.option("--attempt", type=click.IntRange(1), metavar="N", help="Of this attempt only.")
@click.option("--stdout", "file", flag_value="stdout", help="Standard output only, of a run with --split-output.")
@click.option("--stderr", "file", flag_value="stderr", help="Standard error only, of a run with --split-output.")
@via.option
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

    RUN is a number or last (which is meant when none is named). The bytes come out as the run wrote them.
    """
    if via_box:
        via.refuse({"tail": tail, "attempt": attempt, file or "file": file, "json": as_json})
        return via.logs(via_box, run, follow=follow)
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
            endings.copy(chunks)
    except KeyboardInterrupt:
        return failures.INTERRUPTED
    return 0
