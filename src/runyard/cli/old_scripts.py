"""What `sbatch` and `qsub` have in common: from a job to runs, and the answer."""

from __future__ import annotations

import click

from runyard import machine
from runyard.bridges.scripts import answers, results, slips, translate
from runyard.bridges.scripts.flags import Given
from runyard.bridges.scripts.job import Here, Job
from runyard.bridges.scripts.script import Script
from runyard.cli import endings, old_tools, output
from runyard.cli.old_jobs import Jobs
from runyard.client import Client, Run


def submit(job: Job, source: Script | None, here: Here) -> list[Run]:
    """All tasks in one call: their ids are consecutive, and the first one's is the job's."""
    client = Client(notify=output.remark)
    translate.place(job, client.sites())
    parents = Jobs(client).parents(job)
    results.follow(job, here)
    found = slips.in_script(source, here) if source is not None else []
    job.notices += [*found, *slips.in_job(job, here)]
    old_tools.tell(job.notices)
    return client.submit_many(translate.make_specs(job, parents, machine.host_id(), here.home))


def answer(job: Job, runs: list[Run], given: Given, *, terse: bool, quiet: bool = False) -> None:
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
    """The highest code of all tasks."""
    endings.wait_all(runs)
    return max(map(endings.code, runs))
