"""`runyard check`."""

from __future__ import annotations

import os
import shlex
import sys
import time
from typing import Any

import click

from runyard import errors, home, settings
from runyard.cli import output


@click.command("check")
@click.option("--crontab", is_flag=True, help="Print the line for `crontab -e`, and do nothing else.")
@click.option("--limit", type=float, default=50.0, metavar="SECONDS", help="Longest time to work (default 50).")
@output.json_option
def command(crontab: bool, limit: float, as_json: bool) -> None:
    """Do what a yard's daemon does, once: take work, submit, poll, relay, finish.

    For cron on a machine where nothing may stay running. It ends when there is nothing left to do now. Where a daemon
    or another check has this home, it leaves the work to that one.
    """
    loaded = settings.load()
    if crontab:
        click.echo(_crontab_line(loaded))
        return
    done = _check(loaded, limit)
    if as_json:
        output.writer(as_json).write(done, lambda _: None)
    elif done["message"]:
        output.remark(done["message"])


def _check(loaded: settings.Settings, limit: float) -> dict[str, Any]:
    if not loaded.store and _is_idle(loaded):
        return {"did": "nothing", "message": ""}
    try:
        with home.lock(loaded):
            return _work(loaded, time.monotonic() + limit)
    except errors.HomeInUse as error:
        if home.is_held_elsewhere(loaded):
            raise
        return {"did": "nothing", "message": f"left to others: {error.message}"}


def _is_idle(loaded: settings.Settings) -> bool:
    """Whether no run waits or runs, asked of the file itself: most ticks of most clusters end here, cheaply."""
    import sqlite3

    if not loaded.database.exists():
        return True
    question = "SELECT 1 FROM runs WHERE state IN ('queued', 'starting', 'running') LIMIT 1"
    try:
        with sqlite3.connect(f"file:{loaded.database}?mode=ro", uri=True, timeout=5) as connection:
            return connection.execute(question).fetchone() is None
    except sqlite3.Error:
        return False  # the yard itself says it better


def _work(loaded: settings.Settings, deadline: float) -> dict[str, Any]:
    from runyard.cli import daemon, serving

    daemon.log_to_stderr(loaded.log_level if loaded.log_level != "info" else "warning")
    with daemon.opened(loaded) as yard:
        for name, spec in serving.described(yard).items():
            serving.work_once(yard, name, spec, deadline)
        yard.tick()
        return {"did": "a tick", "message": "", "runs": yard.counts()}


def _crontab_line(loaded: settings.Settings) -> str:
    """Complete: cron gives its commands next to no environment."""
    words = [sys.executable, "-P", "-m", "runyard", "check"]
    return f"* * * * * RUNYARD_HOME={shlex.quote(os.fspath(loaded.home))} {shlex.join(words)}"
