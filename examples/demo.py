"""What `make demo` runs: a yard of its own in demo-home, a sweep of eight small trainings, and the best of them."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from runyard import Client, Run

ROOT = Path(__file__).resolve().parent.parent
HOME = Path(os.environ.get("RUNYARD_HOME", ROOT / "demo-home")).absolute()
TRAIN = ROOT / "examples" / "digits" / "train.py"
RATES, WIDTHS = (0.001, 0.01, 0.1, 1.0), (8, 64)
STYLES = {"running": "yellow", "succeeded": "green", "failed": "red", "cancelled": "red"}

console = Console(highlight=False, soft_wrap=True)


def main() -> int:
    client = open_yard()
    runs = client.submit_many([describe(rate, width) for rate, width in itertools.product(RATES, WIDTHS)])
    console.print(f"Submitted {len(runs)} runs in one call: {runs[0].id} to {runs[-1].id}")
    watch(runs)
    failed = [run for run in runs if run.state != "succeeded"]
    for run in failed:
        console.print(f"[red]Run {run.id} {run.state}: {run.reason}[/red]; see: {command('logs', str(run.id))}")
    if not failed:
        show_best(runs)
    show_around(client, runs[-1])
    return 1 if failed else 0


def open_yard() -> Client:
    """The yard of the demo's home: the one that is up from an earlier demo, or a new one."""
    os.environ["RUNYARD_HOME"] = str(HOME)
    client = Client(home=HOME, notify=lambda _: console.print("Starting a yard …"))
    client.health()
    return client


def describe(rate: float, width: int) -> dict[str, Any]:
    words = ["--lr", "{lr}", "--width", "{width}", "--epochs", "60"]
    return {
        "project": "digits",
        "name": f"lr={rate} width={width}",
        "command": [sys.executable, TRAIN.name, *words],
        "cwd": str(TRAIN.parent),
        "params": {"lr": rate, "width": width},
        "resources": {"cpus": 1},
    }


def watch(runs: list[Run]) -> None:
    """A table that fills on a terminal, a line per ending elsewhere."""
    if not console.is_terminal:
        for run in runs:
            run.wait()
            console.print(f"Run {run.id}: {run.name}: {run.state}: {last_line(run)}")
        return
    with Live(draw(runs), console=console, refresh_per_second=8) as live:
        while not all(run.final for run in runs):
            time.sleep(0.2)
            for run in runs:
                if not run.final:
                    run.refresh()
            live.update(draw(runs))


def draw(runs: list[Run]) -> Table:
    table = Table("run", "lr", "width", "state", "last line of its log")
    for run in runs:
        params, style = run.params, STYLES.get(run.state, "dim")
        line = last_line(run) if run.state not in ("queued", "starting") else ""
        table.add_row(str(run.id), str(params["lr"]), str(params["width"]), f"[{style}]{run.state}[/{style}]", line)
    return table


def last_line(run: Run) -> str:
    return (run.logs().splitlines() or [""])[-1]


def show_best(runs: list[Run]) -> None:
    """Fetches what each run left behind and reads its accuracy from there."""
    results = []
    for run in runs:
        directory = HOME / "fetched" / str(run.id)
        run.fetch(directory)
        results.append((json.loads((directory / "result.json").read_text()), run, directory))
    result, run, directory = max(results, key=lambda item: item[0]["accuracy"])
    console.print(
        f"[green]The best is run {run.id}[/green]: learning rate {result['lr']}, width {result['width']}, "
        f"accuracy {result['accuracy']:.1%}. Its outputs: {directory}"
    )


def show_around(client: Client, run: Run) -> None:
    console.print(f"The yard is up at {client.url}. Look around:")
    for words in (["ls"], ["show", str(run.id)], ["logs", str(run.id)], ["status"]):
        console.print(f"  {command(*words)}")
    console.print(f"Stop it with:\n  {command('down')}")


def command(*words: str) -> str:
    shown = Path(sys.executable).parent / "runyard"
    if shown.is_relative_to(Path.cwd()):
        shown = shown.relative_to(Path.cwd())
    return f"RUNYARD_HOME={shlex.quote(str(HOME))} {shown} {shlex.join(words)}"


if __name__ == "__main__":
    sys.exit(main())
