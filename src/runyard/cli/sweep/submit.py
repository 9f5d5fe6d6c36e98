"""`runyard sweep … -- COMMAND`: hand in a sweep, or what is missing of it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from runyard import errors
from runyard.cli import failures, options, output, pairs, selection, spec_file
from runyard.cli.spec_options import override, shared_options
from runyard.cli.sweep import show, views
from runyard.client import Client, Sweep, belongings
from runyard.model import fields, passing
from runyard.model.command import INDEX
from runyard.model.sweep import text
from runyard.model.sweep.document import FIELDS, LIST, Method

PLAIN = ("method", "trials", "reps", "parallel", "params_as")
SPACES = ("space", "configurations", LIST)  # one of which a sweep has
OBJECTIVE = ("minimize", "maximize", "objective")
OF_ONE_RUN: dict[str, Any] = {"params": (), "idempotency_key": None}

OPTIONS = (
    click.option("-f", "--file", metavar="FILE", help="Read the sweep from YAML or JSON; - is stdin."),
    click.option("-p", "--param", "space", multiple=True, metavar="K=SPACE",
                 help="A parameter and what it may be: lr=0.1,0.01 · depth=2..8 · width=64..512/64 · x=0.0..1.0 · "
                      "lr=log:1e-5..1e-1. Repeatable."),
    click.option("--reps", type=click.IntRange(1), metavar="N", help="How often each configuration runs (default 1)."),
    click.option("--method", type=click.Choice([method.value for method in Method]), metavar="METHOD",
                 help="grid (default), random, or what looks for better ones: tpe, gp, cmaes, qmc."),
    click.option("--trials", type=click.IntRange(1), metavar="N", help="How many configurations; a grid has all."),
    click.option("--parallel", type=click.IntRange(1), metavar="N", help="Most runs of it at a time."),
    click.option("--minimize", metavar="METRIC", help="What is good when it is small."),
    click.option("--maximize", metavar="METRIC", help="What is good when it is large."),
    click.option("--stop", "early", metavar="RULE",
                 help="End early what does badly: asha or median, with values as in asha,first=2,factor=3."),
    click.option("--params-as", type=click.Choice(passing.WAYS), metavar="HOW",
                 help="Add parameters that the command does not name: flags (--lr 0.1), hydra (lr=0.1), json (all in "
                      "one word), env ($PARAM_LR)."),
    click.option("--seed", type=int, metavar="N", help="Of the sweep (default 0): the same again gives the same."),
    click.option("--name", metavar="TEXT", help="What to call the sweep; it is known again by it."),
    click.option("--fresh", is_flag=True, help="Begin a new sweep, though this one is known."),
)  # fmt: skip
sweep_options = options.together(*OPTIONS)


@click.command("submit", context_settings={"allow_interspersed_args": False}, short_help="Run a sweep.")
@sweep_options
@click.option("--dry-run", is_flag=True, help="Show what would run; store nothing.")
@click.option("--wait", is_flag=True, help="Return when all of it has ended.")
@shared_options
@output.quiet_option
@output.json_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(
    file: str | None, dry_run: bool, wait: bool, quiet: bool, as_json: bool, command: tuple[str, ...], **given: Any
) -> int:
    """Run a command for many configurations of its parameters.

    Each configuration is run --reps times, each time with a seed of its own. Handing in the same sweep again runs
    only what is missing: new configurations, more repetitions, what has failed. SWEEP is its number, S1, or its name.

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
    """The sweep of the file, with the options over it."""
    whole = dict(document)
    if isinstance(whole.get("stop"), str):
        whole["stop"] = {"rule": whole["stop"]}
    whole = override(whole, {**given, **OF_ONE_RUN}, command)
    whole.update({name: given[name] for name in PLAIN if given[name] is not None})
    whole |= _objective(whole, given)
    if given["early"]:
        whole["stop"] = {**(whole.get("stop") or {}), **early_stop(given["early"])}
    if given["space"]:
        whole["space"] = {**_space(whole), **text.parse_words(given["space"])}
    if given["fresh"]:
        whole["fresh"] = True
    return _checked(whole)


def early_stop(text: str) -> dict[str, Any]:
    """`asha`, or with values: `asha,first=2,factor=3`."""
    rule, *values = text.split(",")
    return {"rule": rule, **pairs.parameters(values, {})}


def _space(document: Mapping[str, Any]) -> Mapping[str, Any]:
    known = document.get("space") or {}
    if not isinstance(known, Mapping):
        raise errors.InvalidInput("space: must be a mapping of names to values")
    return known


def _objective(document: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    said = {name: given[name] for name in ("minimize", "maximize") if given[name]}
    if len(said) > 1:
        raise errors.InvalidInput("--minimize and --maximize say opposite things", "keep one of them")
    for name in OBJECTIVE if said else ():
        document.pop(name, None)
    return said


def _checked(document: dict[str, Any]) -> dict[str, Any]:
    if not any(document.get(name) for name in SPACES):
        raise errors.InvalidInput(
            "there is nothing to sweep over",
            "name parameters: --param lr=0.1,0.01, or a file: -f sweep.yaml; runyard sweep --help lists the commands",
        )
    if not document.get("command"):
        raise errors.InvalidInput("no command was given", "end with what to run: -- python train.py --lr {lr}")
    return document


def warn_of_likes(document: Mapping[str, Any]) -> None:
    """Who forgets to pass the parameters finds out before hours have gone by."""
    names, text = _varied(document), f"{document['command']} {document.get('script')}"
    heads = {name.split(".")[0] for name in (*names, INDEX)}
    if document.get("params_as") or "RUNYARD_" in text or any(f"{{{head}" in text for head in heads):
        return
    output.remark(
        f"every run is the same, unless the program itself reads $RUNYARD_PARAMS: the command has none of "
        f"{', '.join(names)}; write {{{names[0]}}} in it, or add --params-as flags"
    )


def _varied(document: Mapping[str, Any]) -> list[str]:
    listed = [document.get(name) for name in SPACES]
    groups = [item for value in listed if value for item in (value if isinstance(value, (list, tuple)) else [value])]
    return list(dict.fromkeys(str(name) for group in groups if isinstance(group, Mapping) for name in group))


def _load(file: str) -> dict[str, Any]:
    """Folders that a file names are meant from where it is."""
    document = fields.mapping(spec_file.read(file), file, FIELDS)
    return document if file == "-" else belongings.resolve(document, Path(file).absolute().parent)


def _plan(client: Client, document: dict[str, Any], writer: output.Writer) -> int:
    planned = client.plan_sweep(**document)
    warn_of_likes(document)

    def draw(console: Any) -> None:
        from runyard.cli.sweep import grids

        grids.draw_plan(console, planned)

    writer.write(planned, draw)
    return 0


def _wait(sweep: Sweep, quiet: bool, writer: output.Writer) -> int:
    if not quiet:
        output.remark(f"{views.submitted(sweep)}; waiting")
    try:
        with output.waiting(f"waiting for sweep {sweep.label}"):
            sweep.wait()
    except KeyboardInterrupt:
        output.remark(f"\nno longer waiting; sweep {sweep.label} goes on: runyard sweep watch {sweep.label}")
        return failures.INTERRUPTED
    writer.write(sweep.data, lambda console: show.tell_end(sweep), [sweep.label])
    return views.exit_code(sweep)


def _tell(sweep: Sweep) -> None:
    click.echo(views.submitted(sweep))
    output.remark(f"  runyard sweep watch {sweep.label}    see it fill")
    output.remark(f"  runyard sweep table {sweep.label}    all configurations")
