"""`runyard squeue`."""

from __future__ import annotations

import click

from runyard import errors
from runyard.bridges.scripts import jobs, squeue
from runyard.bridges.scripts.flags import Given
from runyard.bridges.scripts.slurm import SQUEUE
from runyard.cli.compat import native_arguments
from runyard.cli.compat.job_lookup import JobLookup, Run, wanted_ids
from runyard.cli.input.selection import ACTIVE
from runyard.cli.show import formats, output
from runyard.client import Client


@native_arguments.old_command(SQUEUE, "")
def command(given: Given) -> None:
    """List unfinished runs, as Slurm's squeue does."""
    runs = _chosen(given, JobLookup(Client(start=False)))
    if "json" in given:
        output.writer(True).write({"jobs": runs}, lambda console: None)
        return
    is_long = "long" in given
    form = given.get("format") or (squeue.LONG if is_long else squeue.SHORT)
    header = "noheader" not in given
    if is_long and header:
        click.echo(formats.now().astimezone().strftime("%c"))
    for line in squeue.lines(runs, form, formats.now(), header=header, by_task="array" in given):
        click.echo(line)


def _chosen(given: Given, known: JobLookup) -> list[Run]:
    runs = _named(given, known) if "jobs" in given else known.active()
    owners, names = _listed(given, "user"), _listed(given, "name")
    if "me" in given:
        owners = [known.me]
    sites, states = _listed(given, "partition"), squeue.read_states(_listed(given, "states"))
    return [
        run
        for run in runs
        if (not owners or run["owner"] in owners)
        and (not names or jobs.name(run) in names)
        and (not sites or run["site"] in sites)
        and (not states or squeue.state(run) in states)
    ]


def _named(given: Given, known: JobLookup) -> list[Run]:
    """Unfinished runs of the named jobs; an unknown job is an error, as for squeue."""
    found = [known.find(jobs.read_slurm_job(word)) for word in wanted_ids(given.all("jobs"))]
    if not any(found):
        raise errors.NotFound("slurm_load_jobs error: Invalid job id specified", "runyard squeue lists the jobs")
    return [run for runs in found for run in runs if run["state"] in ACTIVE]


def _listed(given: Given, name: str) -> list[str]:
    return [item for text in given.all(name) for item in text.split(",") if item]
