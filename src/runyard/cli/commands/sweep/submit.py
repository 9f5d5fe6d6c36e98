"""`runyard sweep … -- COMMAND`: submit a sweep, or the missing runs of a known one."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from runyard import errors
from runyard.cli.commands.sweep import show, views
from runyard.cli.input import selection, spec_file
from runyard.cli.input.spec_options import override_sweep, shared_options, sweep_options
from runyard.cli.show import failures, output
from runyard.client import Client, Sweep, run_inputs
from runyard.model import declaration, fields
from runyard.model.command import INDEX
from runyard.model.sweep import SweepSpec
from runyard.model.sweep.document import LIST
from runyard.model.sweep.objective import SHORT

SPACES = ("space", "configurations", LIST)  # one of which a sweep has


@click.command("submit", context_settings={"allow_interspersed_args": False}, short_help="Run a sweep.")
@click.option("-f", "--file", metavar="FILE", help="Read the sweep from YAML or JSON; - is stdin.")
@sweep_options
@click.option("--dry-run", is_flag=True, help="Show what would run; store nothing.")
@click.option("--wait", is_flag=True, help="Wait for all its runs to finish.")
@shared_options
@output.quiet_option
@output.json_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(
    file: str | None, dry_run: bool, wait: bool, quiet: bool, as_json: bool, command: tuple[str, ...], **given: Any
) -> int:
    """Run a command for many configurations of its parameters.

    Each configuration is run --reps times, each time with its own seed. Submitting the same sweep again runs only what
    is missing: new configurations, more repetitions, failed runs. SWEEP is its number, S1, or its name.

    \b
      runyard sweep --param lr=0.1,0.01 --param width=64,128 --reps 3 -- python train.py --lr {lr} --width {width}
      runyard sweep --param lr=log:1e-5..1e-1 --method tpe --trials 60 --minimize val/loss --stop asha -- …
      runyard sweep -f sweep.yaml --reps 5
    """
    client = Client(notify=output.remark)
    writer = output.writer(as_json, quiet)
    given["after"] = selection.parents(client, given["after"])
    document = describe(_load(file) if file else {}, given, command)
    if dry_run:
        return _plan(client, document, writer)
    sweep = client.sweep(**document, progress=functools.partial(output.progress, quiet=quiet or as_json))
    warn_of_likes(document)
    if wait:
        return _wait(sweep, quiet, writer)
    writer.write(sweep.submitted, lambda console: _tell(sweep), [sweep.label])
    return 0


def describe(document: Mapping[str, Any], given: Mapping[str, Any], command: tuple[str, ...]) -> dict[str, Any]:
    """The sweep from the file, overridden by the options."""
    return _checked(override_sweep(_without_objective(document, given), given, command))


def _without_objective(document: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The command line's objective replaces the file's, by whatever word that is given."""
    said = [name for name in SHORT if given[name]]
    if len(said) > 1:
        raise errors.InvalidInput("--minimize and --maximize exclude each other", "give one of them")
    return {name: item for name, item in document.items() if not said or name not in ("objective", *SHORT)}


def _checked(document: dict[str, Any]) -> dict[str, Any]:
    if not any(document.get(name) for name in SPACES):
        raise errors.InvalidInput(
            "there is nothing to sweep over",
            "name parameters: --param lr=0.1,0.01, or a file: -f sweep.yaml; runyard sweep --help lists the commands",
        )
    if not document.get("command"):
        raise errors.InvalidInput("no command was given", "end with the command: -- python train.py --lr {lr}")
    return document


def warn_of_likes(document: Mapping[str, Any]) -> None:
    """Warn of parameters that are not passed to the command, before hours of training are lost."""
    names, text = _varied(document), f"{document['command']} {document.get('script')}"
    heads = {name.split(".")[0] for name in (*names, INDEX)}
    if document.get("params_as") or "RUNYARD_" in text or any(f"{{{head}" in text for head in heads):
        return
    output.remark(
        f"all runs would be equal, unless the program reads $RUNYARD_PARAMS: the command uses none of "
        f"{', '.join(names)}; write {{{names[0]}}} in it, or add --params-as flags"
    )


def _varied(document: Mapping[str, Any]) -> list[str]:
    listed = [document.get(name) for name in SPACES]
    groups = [item for value in listed if value for item in (value if isinstance(value, (list, tuple)) else [value])]
    return list(dict.fromkeys(str(name) for group in groups if isinstance(group, Mapping) for name in group))


def _load(file: str) -> dict[str, Any]:
    """Relative paths in a file are relative to its directory."""
    document = fields.mapping(spec_file.read(file), file, declaration.document(SweepSpec))
    return document if file == "-" else run_inputs.resolve(document, Path(file).absolute().parent)


def _plan(client: Client, document: dict[str, Any], writer: output.OutputWriter) -> int:
    planned = client.plan_sweep(**document)
    warn_of_likes(document)

    def draw(console: Any) -> None:
        from runyard.cli.commands.sweep import grids

        grids.draw_plan(console, planned)

    writer.write(planned, draw)
    return 0


def _wait(sweep: Sweep, quiet: bool, writer: output.OutputWriter) -> int:
    if not quiet:
        output.remark(f"{views.submitted(sweep)}; waiting")
    try:
        with output.waiting(f"waiting for sweep {sweep.label}"):
            sweep.wait()
    except KeyboardInterrupt:
        output.remark(f"\nno longer waiting; sweep {sweep.label} continues: runyard sweep watch {sweep.label}")
        return failures.INTERRUPTED
    writer.write(sweep.data, lambda console: show.tell_end(sweep), [sweep.label])
    return views.exit_code(sweep)


def _tell(sweep: Sweep) -> None:
    click.echo(views.submitted(sweep))
    output.remark(f"  runyard sweep watch {sweep.label}    watch progress")
    output.remark(f"  runyard sweep table {sweep.label}    list all configurations")
