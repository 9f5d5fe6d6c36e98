"""`runyard submit`."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import click

from runyard import errors
from runyard.cli import output, plans, selection, spec_file, via
from runyard.cli.spec_options import override, spec_options
from runyard.cli.submitted import Telling
from runyard.client import Client, belongings


@click.command("submit", context_settings={"allow_interspersed_args": False})
@spec_options
@click.option("-f", "--file", metavar="FILE", help="Read the run, or a list of runs, from YAML or JSON; - is stdin.")
@click.option("--follow", is_flag=True, help="Print the log as it comes; exit as the run does.")
@click.option("--wait", is_flag=True, help="Return when it has ended; exit as the run does.")
@click.option("--dry-run", is_flag=True, help="Show what would run and where; store nothing.")
@via.option
@output.quiet_option
@output.json_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(
    file: str | None, follow: bool, wait: bool, dry_run: bool, via_box: str | None, quiet: bool, as_json: bool,
    command: tuple[str, ...], **given: Any,
) -> int:  # fmt: skip
    """Hand in a run, or many from a file.

    Options of runyard come first; from the first word of COMMAND on, everything belongs to the command.

    \b
      runyard submit -- python train.py --lr 0.1
      runyard submit --cpus 2 --memory 4G --time 2h -p lr=0.1 -- python train.py --lr {lr}
      runyard submit --data corpora --data /scratch/mnist -- python train.py
      runyard submit -f runs.yaml --project digits
      runyard submit --via sftp://node/incoming -- python train.py
    """
    client = Client(notify=output.remark)
    telling = Telling(as_json=as_json, quiet=quiet, wait=wait, follow=follow)
    writer = output.writer(as_json, quiet)
    if via_box:
        via.refuse({"follow": follow, "wait": wait, "dry_run": dry_run, "after": given["after"]})
    given["after"] = selection.parents(client, given["after"])
    found, several = _load(file) if file else ([{}], False)
    specs = [override(spec, given, command) for spec in found]
    telling.check(several)
    if not file and not command:
        raise errors.InvalidInput("no command was given", "say what to run: runyard submit -- python train.py")
    if via_box:
        return via.submit(via_box, specs, writer, quiet=quiet or as_json)
    if dry_run:
        return _plan(client, specs, several, writer)
    progress = functools.partial(output.progress, quiet=quiet or as_json)
    runs = client.submit_many(specs, progress=progress) if several else [client.submit(**specs[0], progress=progress)]
    return telling.tell(runs, several)


def _load(file: str) -> tuple[list[dict[str, Any]], bool]:
    """Folders that a file names are meant from where it is."""
    found, several = spec_file.load(file)
    root = None if file == "-" else Path(file).absolute().parent
    return [belongings.resolve(spec, root) for spec in found] if root else found, several


def _plan(client: Client, specs: list[dict[str, Any]], several: bool, writer: output.Writer) -> int:
    planned = [plans.complete(client, client.plan(**spec)) for spec in specs]

    def draw(console: Any) -> None:
        for plan in planned:
            plans.draw(console, plan)

    writer.write(planned if several else planned[0], draw)
    return 0
