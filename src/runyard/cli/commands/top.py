"""`runyard top`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

import click

from runyard.cli.input import selection
from runyard.cli.show import formats, output
from runyard.client import Client, Run
from runyard.model import ranges, units
from runyard.model.states import FINAL

INTERVAL = 1.0
MOST = 50  # each run costs one request per second


@click.command("top")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--once", is_flag=True, help="Show it once and return.")
@output.json_option
def command(runs: tuple[str, ...], once: bool, as_json: bool) -> None:
    """Show the cores, memory and GPUs that running runs use.

    Without RUN it shows all running runs. Ctrl-C stops it.
    """
    client = Client(start=False)
    found = _sample(client, runs)
    if as_json or once or not sys.stdout.isatty():
        output.writer(as_json).write(found, lambda console: console.print(table(found)))
    else:
        _live(client, runs)


def _sample(client: Client, named: Iterable[str]) -> list[dict[str, Any]]:
    chosen = selection.select(client, named) if named else client.runs(state="running", limit=MOST)
    return [describe(run) for run in chosen]


def describe(run: Run) -> dict[str, Any]:
    """Used and granted resources, from the newest sample."""
    samples = run.usage(1)
    newest = samples[-1] if samples else {}
    slots = run.granted or {}
    return {
        "id": run.id,
        "name": formats.title(run.data),
        "state": run.state,
        "cpus": {"used": newest.get("cpu"), "granted": slots.get("cpus")},
        "threads": newest.get("threads"),
        "processes": newest.get("processes"),
        "memory": {"used": newest.get("rss"), "limit": slots.get("memory")},
        "gpus": newest.get("gpus", []),
        "time": formats.elapsed(run.data),
    }


def _live(client: Client, named: Iterable[str]) -> None:
    from rich.live import Live

    with Live(console=output.console(), auto_refresh=False, transient=True) as live:
        while True:
            rows = _sample(client, named)
            live.update(table(rows), refresh=True)
            if named and all(row["state"] in FINAL for row in rows):
                break
            time.sleep(INTERVAL)
    output.remark(f"finished: runyard show {ranges.show(row['id'] for row in rows)}")


def table(rows: list[dict[str, Any]]) -> Any:
    from rich.text import Text

    from runyard.cli.show import tables

    if not rows:
        return Text("no run is running: runyard ls --state queued lists queued runs")
    columns = (
        tables.Column(title="ID", value=lambda row: str(row["id"]), right=True),
        tables.Column(title="NAME", value=lambda row: row["name"], flexible=True),
        tables.Column(title="STATE", value=lambda row: row["state"], coloured=True, boring=("running",)),
        tables.Column(title="CORES", value=_cores, right=True),
        tables.Column(title="THREADS", value=lambda row: _shown(row["threads"]), right=True),
        tables.Column(title="MEMORY", value=_memory, right=True),
        tables.Column(title="GPU", value=_gpu, boring=("",)),
        tables.Column(title="TIME", value=lambda row: row["time"], right=True),
    )
    return tables.build(columns, rows)


def _cores(row: Mapping[str, Any]) -> str:
    used = row["cpus"]["used"]
    return f"{'-' if used is None else f'{used:.1f}'} of {_shown(row['cpus']['granted'])}"


def _memory(row: Mapping[str, Any]) -> str:
    limit = row["memory"]["limit"]
    return units.show_size(row["memory"]["used"]) + (f" of {units.show_size(limit)}" if limit else "")


def _gpu(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{gpu.get('utilization', '-')}% {units.show_size(gpu.get('memory'))}" for gpu in row["gpus"])


def _shown(value: Any) -> str:
    return "-" if value is None else str(value)
