"""`runyard sweep watch`."""

from __future__ import annotations

import sys
from typing import Any

import click

from runyard.cli.commands.sweep import show, views
from runyard.cli.show import failures, output
from runyard.client import Client, Sweep

INTERVAL = 0.5
MOST = 500  # trials that are requested at every refresh
AROUND = 8  # lines of the terminal around the table


@click.command("watch")
@click.argument("sweep")
@output.json_option
def command(sweep: str, as_json: bool) -> int:
    """Watch a sweep until it has finished; Ctrl-C leaves it running."""
    found = Client(start=False).find_sweep(sweep)
    try:
        if sys.stdout.isatty() and not as_json:
            _live(found)
        else:
            _lines(found, silent=as_json)
    except KeyboardInterrupt:
        output.remark(f"\nsweep {found.label} continues: runyard sweep watch {found.label}")
        return failures.INTERRUPTED
    output.writer(as_json).write(found.data, lambda console: show.tell_end(found))
    return views.exit_code(found)


def _live(sweep: Sweep) -> None:
    from rich.live import Live

    console = output.console()
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        for look in sweep.looks(INTERVAL):
            live.update(_page(look, console.height - AROUND), refresh=True)


def _page(sweep: Sweep, rows: int) -> Any:
    from rich.console import Group
    from rich.text import Text

    from runyard.cli.commands.sweep import grids

    view = sweep.data
    lines = [
        f"sweep {sweep.label} {sweep.state}  {views.bar(view)} {views.progress(view)}",
        views.counts(view["runs"]), views.best_sentence(view), views.saved_sentence(view),
    ]  # fmt: skip
    shown = [Text(line, no_wrap=True, overflow="ellipsis") for line in lines if line]
    if view["trials"]["made"] > MOST:
        return Group(*shown)
    wanted = views.objective(view)
    trials = views.ranked(sweep.trials(), wanted)
    return Group(*shown, grids.of_trials(trials[: max(rows, 1)], wanted.metric if wanted else None, is_cut=True))


def _lines(sweep: Sweep, *, silent: bool) -> None:
    """Without a terminal: one line per change."""
    before = ""
    for look in sweep.looks():
        line = views.sentence(look)
        if line != before and not look.final and not silent:
            click.echo(line)
            sys.stdout.flush()
        before = line
