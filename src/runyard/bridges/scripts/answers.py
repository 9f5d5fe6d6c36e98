"""The output of the commands, in the format of Slurm and Grid Engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runyard.bridges.scripts import jobs
from runyard.bridges.scripts.job import ScriptJob

Run = Mapping[str, Any]


def submitted(job: ScriptJob, number: int, *, terse: bool) -> str:
    """`number` is the id of the job: that of its first run."""
    if job.dialect == "slurm":
        return str(number) if terse else f"Submitted batch job {number}"
    if job.tasks is None:
        return str(number) if terse else f'Your job {number} ("{job.name}") has been submitted'
    tasks = f"{number}.{job.tasks.indexes[0]}-{job.tasks.last}:{job.tasks.step}"
    return tasks if terse else f'Your job-array {tasks} ("{job.name}") has been submitted'


def exited(run: Run) -> str:
    """As `qsub -sync y` says it."""
    if run["exit_code"] is None:
        return f"Job {gridengine_id(run)} failed: {run['reason'] or run['state']}"
    return f"Job {gridengine_id(run)} exited with exit code {run['exit_code']}."


def deleted(run: Run, user: str) -> str:
    """As `qdel` says it, of a run that was waiting or has to be stopped first."""
    thing = "job-array task" if run["array"] else "job"
    if run["state"] in ("starting", "running"):
        return f"{user} has registered the {thing} {gridengine_id(run)} for deletion"
    return f"{user} has deleted {thing} {gridengine_id(run)}"


def missing(word: str | None, owners: Sequence[str], user: str) -> str:
    """As `qdel` says it, of a name that no job has; None: any job of these users."""
    if word is None:
        return f"There is no job registered for the following users: {','.join(owners)}"
    if owners or jobs.read_gridengine_job(word).number is None:
        return f"The job {word} of user(s) {','.join(owners) or user} does not exist"
    return f'denied: job "{word}" does not exist'


def slurm_id(run: Run) -> str:
    array = run["array"]
    return f"{jobs.array_id(run)}_{array['index']}" if array else str(run["id"])


def gridengine_id(run: Run) -> str:
    array = run["array"]
    return f"{jobs.array_id(run)}.{array['index']}" if array else str(run["id"])
