"""What `make demo` runs: a yard of its own in demo-home, a sweep of small trainings, and the best of them."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table

from runyard import Client
from runyard.client import Sweep, Trial

ROOT = Path(__file__).resolve().parent.parent
HOME = Path(os.environ.get("RUNYARD_HOME", ROOT / "demo-home")).absolute()
TRAIN = ROOT / "examples" / "digits" / "train.py"
SPACE = {"lr": [0.1, 1.0], "width": [8, 64]}
REPS = 2
STYLES = {"running": "yellow", "succeeded": "green", "failed": "red", "cancelled": "red"}

console = Console(highlight=False, soft_wrap=True)


def main() -> int:
    client = open_yard()
    sweep = submit(client)
    console.print(f"Submitted sweep {sweep.label}: {len(sweep.trials())} configurations, {REPS} runs of each")
    watch(sweep)
    if sweep.state == "succeeded":
        show_best(client, sweep)
    else:
        console.print(f"[red]Sweep {sweep.label} {sweep.state}[/red]; see: {command('sweep', 'show', sweep.label)}")
    show_around(client, sweep)
    return 0 if sweep.state == "succeeded" else 1


def open_yard() -> Client:
    """The yard of the demo's home: the one that is up from an earlier demo, or a new one."""
    os.environ["RUNYARD_HOME"] = str(HOME)
    client = Client(home=HOME, notify=lambda _: console.print("Starting a yard …"))
    client.health()
    return client


def submit(client: Client) -> Sweep:
    words = ["--lr", "{lr}", "--width", "{width}", "--pictures", "2000", "--epochs", "20"]
    return client.sweep(
        [sys.executable, TRAIN.name, *words],
        cwd=str(TRAIN.parent),
        project="digits",
        space=SPACE,
        reps=REPS,
        minimize="val/loss",
        fresh=True,
    )


def watch(sweep: Sweep) -> None:
    """A table that fills on a terminal, a line for each change elsewhere."""
    if not console.is_terminal:
        for look in sweep.looks():
            counts = ", ".join(f"{count} {state}" for state, count in look.data["runs"].items() if count)
            console.print(f"Sweep {look.label} {look.state}: {counts}")
        console.print(draw(sweep.trials()))
        return
    with Live(draw(sweep.trials()), console=console, auto_refresh=False) as live:
        for look in sweep.looks(longest_pause=0.3):
            live.update(draw(look.trials()), refresh=True)


def draw(trials: Iterable[Trial]) -> Table:
    table = Table("trial", "lr", "width", "runs", "state", "validation loss")
    for trial in trials:
        style = STYLES.get(trial.state, "dim")
        runs = " ".join(str(run["id"]) for run in trial.runs)
        params = [str(trial.params[name]) for name in SPACE]
        table.add_row(str(trial.number), *params, runs, f"[{style}]{trial.state}[/{style}]", loss(trial))
    return table


def loss(trial: Trial) -> str:
    """The mean of its runs, and half of the interval in which the true one lies with 95 % confidence."""
    if trial.value is None:
        return ""
    if trial.low is None or trial.high is None:
        return f"{trial.value:.3f}"
    return f"{trial.value:.3f} ± {(trial.high - trial.low) / 2:.3f}"


def show_best(client: Client, sweep: Sweep) -> None:
    best = sweep.best()
    assert best is not None, "every run reports its loss"
    for run in best.runs:
        client.run(run["id"]).fetch(HOME / "fetched" / str(run["id"]))
    outputs = HOME / "fetched" / str(best.runs[0]["id"])
    params = ", ".join(f"{name} {value}" for name, value in best.params.items())
    console.print(f"[green]The best is trial {best.number}[/green]: {params}, loss {loss(best)}.")
    console.print(f"The outputs of its first run: {outputs}")


def show_around(client: Client, sweep: Sweep) -> None:
    console.print(f"The yard is up at {client.url}. Look around:")
    for words in (["sweep", "table", sweep.label], ["sweep", "best", sweep.label], ["ls"], ["logs", "last"]):
        console.print(f"  {command(*words)}")
    console.print(f"Stop it with:\n  {command('down')}")


def command(*words: str) -> str:
    shown = Path(sys.executable).parent / "runyard"
    if shown.is_relative_to(Path.cwd()):
        shown = shown.relative_to(Path.cwd())
    return f"RUNYARD_HOME={shlex.quote(str(HOME))} {shown} {shlex.join(words)}"


if __name__ == "__main__":
    sys.exit(main())
