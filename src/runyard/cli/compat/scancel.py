"""`runyard scancel`."""

from __future__ import annotations

from runyard import errors
from runyard.bridges.scripts import answers, jobs, squeue
from runyard.bridges.scripts.flags import Given
from runyard.bridges.scripts.slurm import SCANCEL
from runyard.cli.compat import native_arguments
from runyard.cli.compat.job_lookup import JobLookup, Run, named_words
from runyard.cli.input.selection import ACTIVE
from runyard.cli.show import change_report, output
from runyard.client import Client

FILTERS = ("jobname", "user", "me", "state", "partition")


@native_arguments.old_command(SCANCEL, "[JOB]...")
def command(given: Given) -> int:
    """Cancel runs, as Slurm's scancel does.

    JOB is 42, a task 42_3, or tasks 42_[1-4]. It does not wait until they have ended; runyard cancel does.
    """
    client = Client(start=False)
    runs = _chosen(given, JobLookup(client))
    if "verbose" in given:
        for run in runs:
            output.remark(f"scancel: Terminating job {answers.slurm_id(run)}")
    outcome = change_report.ChangeOutcome.split(client.cancel([run["id"] for run in runs])).forgive_ended(client)
    if "json" in given:
        return outcome.tell(output.writer(True), lambda run: "", "")
    return outcome.tell(output.writer(False, quiet=True), lambda run: "", "") if outcome.refused else 0


def _chosen(given: Given, known: JobLookup) -> list[Run]:
    """Unfinished jobs that are named; without names, all that match the filters."""
    if not given.words and not any(name in given for name in FILTERS):
        raise errors.InvalidInput("no job identification provided", "name jobs: runyard scancel 42 43_1")
    states = squeue.read_states(given.all("state")[-1:])
    runs = _named(given, known) if given.words else known.active()
    alive = [run for run in runs if run["state"] in ACTIVE and (not states or squeue.state(run) in states)]
    return [run for run in alive if _matches(run, given, known)]


def _named(given: Given, known: JobLookup) -> list[Run]:
    found = {word: known.find(jobs.read_slurm_job(word)) for word in named_words(given.words)}
    for word, runs in found.items():
        if not runs and "quiet" not in given:
            output.remark(f"scancel: error: Kill job error on job id {word}: Invalid job id specified")
    return [run for runs in found.values() for run in runs]


def _matches(run: Run, given: Given, known: JobLookup) -> bool:
    owner = known.me if "me" in given else given.get("user")
    found = {"jobname": jobs.name(run), "owner": run["owner"], "site": run["site"]}
    wanted = {"jobname": given.get("jobname"), "owner": owner, "site": given.get("partition")}
    return all(value in (None, found[field]) for field, value in wanted.items())
