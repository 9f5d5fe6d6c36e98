"""What `sbatch` and `qsub` have in common: submit a job as runs, and print its id."""

from __future__ import annotations

import click

from runyard import machine
from runyard.bridges.scripts import answers, mistakes, results, translate
from runyard.bridges.scripts.flags import Given
from runyard.bridges.scripts.job import Here, ScriptJob
from runyard.bridges.scripts.script import Script
from runyard.cli.compat import native_arguments
from runyard.cli.compat.job_lookup import JobLookup
from runyard.cli.show import output, run_endings
from runyard.client import Client, Run


def submit(job: ScriptJob, source: Script | None, here: Here) -> list[Run]:
    """All tasks in one call: their ids are consecutive, and the first is the job's id."""
    client = Client(notify=output.remark)
    translate.place(job, client.sites())
    parents = JobLookup(client).parents(job)
    results.follow(job, here)
    found = mistakes.in_script(source, here) if source is not None else []
    job.notices += [*found, *mistakes.in_job(job, here)]
    native_arguments.tell(job.notices)
    return client.submit_many(translate.make_specs(job, parents, machine.host_id(), here.home))


def answer(job: ScriptJob, runs: list[Run], given: Given, *, terse: bool, quiet: bool = False) -> None:
    document = {
        "job": runs[0].id,
        "runs": [run.id for run in runs],
        "notices": [{"text": notice.text, "fix": notice.fix} for notice in job.notices],
    }
    if "json" in given:
        output.writer(True).write(document, lambda console: None)
    elif not quiet:
        click.echo(answers.submitted(job, runs[0].id, terse=terse))


def wait(runs: list[Run]) -> int:
    """The highest exit code of all tasks."""
    run_endings.wait_all(runs)
    return max(map(run_endings.code, runs))
