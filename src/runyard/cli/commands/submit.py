"""`runyard submit`."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import click

from runyard import errors
from runyard.cli.commands import drop_box
from runyard.cli.input import selection, spec_file
from runyard.cli.input.spec_options import override, spec_options
from runyard.cli.show import output, plan_page
from runyard.cli.show.submitted_runs import Telling
from runyard.client import Client, run_inputs


@click.command("submit", context_settings={"allow_interspersed_args": False})
@spec_options
@click.option("-f", "--file", metavar="FILE", help="Read one run or a list of runs from YAML or JSON; - is stdin.")
@click.option("--follow", is_flag=True, help="Print the log live; exit with the run's exit code.")
@click.option("--wait", is_flag=True, help="Wait for the run to finish; exit with its exit code.")
@click.option("--dry-run", is_flag=True, help="Show what would run and where; store nothing.")
@drop_box.option
@output.quiet_option
@output.json_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(
    file: str | None, follow: bool, wait: bool, dry_run: bool, via_box: str | None, quiet: bool, as_json: bool,
    command: tuple[str, ...], **given: Any,
) -> int:  # fmt: skip
    """Submit a run, or many from a file.

    Options of runyard come first; everything from the first word of COMMAND on belongs to the command.

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
        drop_box.refuse({"follow": follow, "wait": wait, "dry_run": dry_run, "after": given["after"]})
    given["after"] = selection.parents(client, given["after"])
    found, several = _load(file) if file else ([{}], False)
    specs = [override(spec, given, command) for spec in found]
    telling.check(several)
    if not file and not command:
        raise errors.InvalidInput("no command was given", "give one: runyard submit -- python train.py")
    if via_box:
        return drop_box.submit(via_box, specs, writer, quiet=quiet or as_json)
    if dry_run:
        return _plan(client, specs, several, writer)
    progress = functools.partial(output.progress, quiet=quiet or as_json)
    runs = client.submit_many(specs, progress=progress) if several else [client.submit(**specs[0], progress=progress)]
    return telling.tell(runs, several)


def _load(file: str) -> tuple[list[dict[str, Any]], bool]:
    """Relative paths in a file are relative to its directory."""
    found, several = spec_file.load(file)
    root = None if file == "-" else Path(file).absolute().parent
    return [run_inputs.resolve(spec, root) for spec in found] if root else found, several


def _plan(client: Client, specs: list[dict[str, Any]], several: bool, writer: output.OutputWriter) -> int:
    planned = [plan_page.complete(client, client.plan(**spec)) for spec in specs]

    def draw(console: Any) -> None:
        for plan in planned:
            plan_page.draw(console, plan)

    writer.write(planned if several else planned[0], draw)
    return 0
