"""`runyard metrics`."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runyard import errors
from runyard.cli.input import selection
from runyard.cli.show import formats, output
from runyard.client import Client, Run
from runyard.model.metrics import name_of

if TYPE_CHECKING:
    from rich.table import Table

CSV, PARQUET = "csv", "parquet"
MOST_OFFERED = 10  # names
LONGEST_NAME = 60  # characters, in a list of names


@click.command("metrics")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--name", "names", multiple=True, metavar="NAME", help="Only this metric, or 'val/*'. Repeatable.")
@click.option("--csv", "form", flag_value=CSV, default=None, help="Write every value as CSV, one row per step.")
@click.option(
    "--parquet", "form", flag_value=PARQUET, default=None, help="Write every value as Parquet (needs pyarrow)."
)
@click.option("-o", "--output", "target", metavar="FILE", help="File to write (CSV: standard output by default).")
@output.json_option
def command(runs: tuple[str, ...], names: tuple[str, ...], form: str | None, target: str | None, as_json: bool) -> None:
    """Show the metrics of runs, or export every value.

    RUN is a number, a range such as 3-9, a sweep (S1, or its name), or last (the default).
    """
    form = _form(form, target, as_json)
    found = selection.select(Client(start=False), runs or ("last",))
    known = {run: {metric["name"]: metric for metric in run.reported()} for run in found}
    check(known.values(), names)
    if form is not None:
        _export({run: wanted(kept, names) for run, kept in known.items()}, form, target, as_json)
    else:
        _show([_document(run, kept, names) for run, kept in known.items()], as_json)


def check(known: Iterable[Iterable[str]], names: Sequence[str]) -> list[str]:
    """Metric names by run; raises NotFound if no run has a requested metric."""
    every = sorted({name for one in known for name in one})
    missing = [name for name in names if not wanted(every, [name])]
    if missing:
        told = f"none of these runs has reported {' or '.join(map(short, missing))}"
        raise errors.NotFound(told, offer(every) if every else "they have reported no metrics yet: runyard show RUN")
    return every


def wanted(known: Iterable[str], names: Sequence[str]) -> list[str]:
    """Metrics that match: a name as reported, as stored, or a pattern."""
    meant = {*names, *map(name_of, names)}
    return [name for name in known if not names or name in meant or any(fnmatch.fnmatchcase(name, n) for n in names)]


def offer(known: Sequence[str]) -> str:
    """The available names: `reported: acc, loss`."""
    return f"reported: {', '.join(map(short, known[:MOST_OFFERED]))}{', …' if len(known) > MOST_OFFERED else ''}"


def short(name: str) -> str:
    return formats.one_line(name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…")


def _document(run: Run, kept: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {"id": run.id, "metrics": [kept[name] for name in wanted(kept, names)], "summary": run.summary()}


# --- for people -------------------------------------------------------------------------------------------------------


def _show(documents: Sequence[dict[str, Any]], as_json: bool) -> None:
    rows = [{"run": document["id"], **metric} for document in documents for metric in document["metrics"]]

    def draw(console: Any) -> None:
        if rows:
            console.print(_table(rows, several=len(documents) > 1))
        else:
            output.remark("no metrics were reported: see `runyard show`, or report some with `runyard.job.log`")

    output.writer(as_json).write(documents[0] if len(documents) == 1 else documents, draw)


def _table(rows: list[dict[str, Any]], *, several: bool) -> Table:
    from runyard.cli.show import tables

    columns = (
        *([tables.Column(title="RUN", value=lambda row: str(row["run"]), right=True)] if several else []),
        tables.Column(title="METRIC", value=lambda row: formats.one_line(row["name"]), flexible=True),
        tables.Column(title="LAST", value=lambda row: formats.number(row["last"]), right=True),
        tables.Column(title="STEP", value=lambda row: formats.number(row["last_step"]), right=True, boring=("-",)),
        tables.Column(title="LEAST", value=lambda row: formats.number(row["minimum"]), right=True),
        tables.Column(title="GREATEST", value=lambda row: formats.number(row["maximum"]), right=True),
        tables.Column(title="VALUES", value=lambda row: str(row["count"]), right=True),
    )
    return tables.build(columns, rows)


# --- every value ------------------------------------------------------------------------------------------------------


def _form(form: str | None, target: str | None, as_json: bool) -> str | None:
    if form is None and target is not None:
        form = PARQUET if Path(target).suffix in (".parquet", ".pq") else CSV
    if form == PARQUET and target is None:
        raise errors.InvalidInput("--parquet needs a file to write", "name it: -o metrics.parquet")
    if form == CSV and target is None and as_json:
        raise errors.InvalidInput("--csv and --json both write to standard output", "add -o metrics.csv")
    return form


def _export(names: Mapping[Run, Sequence[str]], form: str, target: str | None, as_json: bool) -> None:
    from runyard.cli.show import metric_export

    exported = metric_export.collect(names)
    if target is None:
        metric_export.write_csv(exported, sys.stdout)
        return
    path = Path(target)
    metric_export.to_file(exported, form, path)
    document = {"path": str(path), "rows": exported.size, "columns": exported.columns}
    output.writer(as_json).write(document, lambda console: _tell(document))


def _tell(document: Mapping[str, Any]) -> None:
    click.echo(document["path"])
    output.remark(f"{document['rows']} rows, {len(document['columns'])} columns")
