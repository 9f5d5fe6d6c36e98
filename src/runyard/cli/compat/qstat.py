"""`runyard qstat`."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

import click

from runyard import errors
from runyard.bridges.scripts import deleted_jobs, jobs, qstat
from runyard.bridges.scripts.flags import Given
from runyard.bridges.scripts.gridengine import QSTAT
from runyard.cli.compat import native_arguments
from runyard.cli.compat.job_lookup import JobLookup, Run
from runyard.cli.input.selection import ACTIVE
from runyard.cli.show import formats, output
from runyard.client import Client

REMEMBERED = datetime.timedelta(days=7)  # how long a job that could not start is listed
MOST_REMEMBERED = 200


@native_arguments.old_command(QSTAT, "")
def command(given: Given) -> None:
    """List unfinished runs, as Grid Engine's qstat does.

    A job of qsub that could not be started is shown with the state Eqw for a week, or until qdel removes it from the
    list; qstat -j shows the reason.
    """
    by_task = qstat.read_groups(given.get("g"))
    client = Client(start=False)
    known = JobLookup(client)
    named = [word for text in given.all("j") for word in text.split(",") if word]
    if named:
        _tell_details(client, known, named, "json" in given)
        return
    runs = _chosen(given, client, known)
    if "json" in given:
        output.writer(True).write({"jobs": runs}, lambda console: None)
        return
    for line in qstat.lines(runs, by_task=by_task):
        click.echo(line)


def _chosen(given: Given, client: Client, known: JobLookup) -> list[Run]:
    owners = [item for text in given.all("u") for item in text.split(",")] or [known.me]
    filters: dict[str, Any] = {"owner": owners[0]} if len(owners) == 1 and not set(owners[0]) & set("*?[") else {}
    runs = [*known.active(**filters), *_in_error(client, filters)]
    kinds = qstat.read_states(given.get("s") or "a")
    sites = [item.partition("@")[0] for text in given.all("q") for item in text.split(",")]
    mine = [run for run in runs if qstat.is_of(run, owners)]
    return [run for run in mine if (not sites or run["site"] in sites) and qstat.state(run) in kinds]


def _in_error(client: Client, filters: dict[str, Any]) -> list[Run]:
    """For runyard these have finished; Grid Engine lists them until they are deleted."""
    gone, since = deleted_jobs.read(client.home), formats.now() - REMEMBERED
    failed = (run.data for run in client.runs(state="failed", limit=MOST_REMEMBERED, **filters))
    return [run for run in failed if qstat.is_in_error(run) and run["id"] not in gone and _ended(run) > since]


def _ended(run: Run) -> datetime.datetime:
    return formats.moment(run["ended_at"]) or formats.now()


def _tell_details(client: Client, known: JobLookup, named: Iterable[str], as_json: bool) -> None:
    found = {word: _unfinished(client, known.find(jobs.read_gridengine_job(word))) for word in named}
    missing = [word for word, runs in found.items() if not runs]
    if missing:
        raise errors.NotFound(f"Following jobs do not exist: {' '.join(missing)}", "runyard ls shows those that ended")
    if as_json:
        output.writer(True).write({"jobs": [run for runs in found.values() for run in runs]}, lambda console: None)
        return
    for runs in found.values():
        spec = client.run(runs[0]["id"]).spec
        for line in qstat.details(runs, spec):
            click.echo(line)


def _unfinished(client: Client, runs: list[Run]) -> list[Run]:
    gone = deleted_jobs.read(client.home)
    return [run for run in runs if run["state"] in ACTIVE or (qstat.is_in_error(run) and run["id"] not in gone)]
