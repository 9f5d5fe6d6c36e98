"""`runyard qdel`."""

from __future__ import annotations

import click

from runyard import errors
from runyard.bridges.scripts import answers, arrays, deleted_jobs, jobs, qstat
from runyard.bridges.scripts.flags import Given
from runyard.bridges.scripts.gridengine import QDEL
from runyard.bridges.scripts.jobs import Reference
from runyard.cli.compat import native_arguments
from runyard.cli.compat.job_lookup import JobLookup, Run, named_words, wanted_ids
from runyard.cli.input.selection import ACTIVE
from runyard.cli.show import change_report, failures, output
from runyard.client import Client


@native_arguments.old_command(QDEL, "[JOB]...")
def command(given: Given) -> int:
    """Delete jobs, as Grid Engine's qdel does.

    JOB is 42, a task 42.3, or a name. It does not wait until they have ended; runyard cancel does.
    """
    if not given.words and "u" not in given:
        raise errors.InvalidInput("no job was named", "name jobs: runyard qdel 42 43.1")
    client = Client(start=False)
    known = JobLookup(client)
    owners = wanted_ids(given.all("u"))
    found = _chosen(given, known, owners)
    runs = [run for named in found.values() for run in named]
    outcome = _delete(client, runs)
    missing = [answers.missing(word, owners, known.me) for word, named in found.items() if not named]
    if "json" in given:
        return outcome.tell(output.writer(True), lambda run: "", "") or int(bool(missing))
    _tell(runs, outcome, known.me)
    for sentence in missing:
        click.echo(sentence)
    return 1 if missing or outcome.refused else 0


def _chosen(given: Given, known: JobLookup, owners: list[str]) -> dict[str | None, list[Run]]:
    """The jobs that are named; without names, all of these users."""
    named: dict[str | None, list[Run]] = {None: []}
    if given.words:
        named = {word: known.find(_reference(word, given)) for word in named_words(given.words)}
    elif owners:
        named = {None: known.active()}
    return {
        word: [run for run in runs if _is_there(run) and (not owners or qstat.is_of(run, owners))]
        for word, runs in named.items()
    }


def _reference(word: str, given: Given) -> Reference:
    named, tasks = jobs.read_gridengine_job(word), given.get("t")
    if tasks is None:
        return named
    return Reference(number=named.number, name=named.name, tasks=arrays.parse_gridengine(tasks, None).indexes)


def _is_there(run: Run) -> bool:
    """To Grid Engine a job that could not start is still in the queue."""
    return run["state"] in ACTIVE or qstat.is_in_error(run)


def _delete(client: Client, runs: list[Run]) -> change_report.ChangeOutcome:
    in_error = [run["id"] for run in runs if qstat.is_in_error(run)]
    if in_error:
        deleted_jobs.add(client.home, in_error)
    alive = [run["id"] for run in runs if run["state"] in ACTIVE]
    return change_report.ChangeOutcome.split(client.cancel(alive)).forgive_ended(client)


def _tell(runs: list[Run], outcome: change_report.ChangeOutcome, user: str) -> None:
    for run in runs:
        if run["id"] in outcome.refused:
            failures.report(outcome.refused[run["id"]].message)
        else:
            click.echo(answers.deleted(run, user))
