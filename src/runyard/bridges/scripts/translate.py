"""A job as run specs: one for each task, with consecutive ids once they are submitted together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from runyard import errors
from runyard.bridges.scripts import patterns
from runyard.bridges.scripts.job import ScriptJob
from runyard.bridges.scripts.script import Script
from runyard.model import fields

TITLES = {"slurm": "Slurm", "gridengine": "Grid Engine"}
QUEUES = {"slurm": "partition", "gridengine": "queue"}
_QUEUE_OPTIONS = {"slurm": "partition", "gridengine": "q"}
_WITHOUT_TASK = {"slurm": patterns.NO_TASK, "gridengine": 0}
NOTHING = "/dev/null"
_COMMAND_PLACE = re.compile(
    r"(?:^|[;&|({`]|\$\(|\b(?:then|do|else|exec|time|nohup|env)\s)\s*(?:\w+=\S*\s+)*"
    r"(srun|scontrol|sbcast|sattach|strigger)\b"
)

Site = Mapping[str, Any]


def place(job: ScriptJob, sites: Sequence[Site]) -> None:
    """Decide where the job may run, and which of its flags apply there.

    A site that is named, or whose name is the queue's; else the yard's only site of the job's own kind; else any.
    """
    chosen = _chosen(job, sites)
    needs = needed_program(job.script) if job.script is not None else None
    if needs and (chosen is None or chosen["kind"] != "slurm"):
        raise errors.Unsatisfiable(
            f"the script needs {needs}, and there is no Slurm {_there(chosen)}",
            "run it at a Slurm site (runyard site add … --kind slurm), or start its processes without it",
        )
    job.site = chosen["name"] if chosen is not None else None
    if chosen is not None and chosen["kind"] == job.dialect:
        _pass_on(job, chosen)
    else:
        _make_do(job, chosen)


def _there(chosen: Site | None) -> str:
    return f"at the site {chosen['name']!r}" if chosen is not None else "in this yard"


def _chosen(job: ScriptJob, sites: Sequence[Site]) -> Site | None:
    by_name = {site["name"]: site for site in sites}
    if job.site is not None:
        if job.site not in by_name:
            raise errors.InvalidInput(f"there is no site {job.site!r}", fields.nearest(job.site, by_name))
        return by_name[job.site]
    if job.queue in by_name:
        return by_name[str(job.queue)]
    own = [site for site in sites if site["kind"] == job.dialect]
    if len(own) > 1:
        names = ", ".join(site["name"] for site in own)
        raise errors.InvalidInput(f"this yard has several {TITLES[job.dialect]} sites: {names}", "name one with --site")
    return own[0] if own else None


def _pass_on(job: ScriptJob, site: Site) -> None:
    """A scheduler of its own kind gets the job's flags unchanged."""
    job.native |= job.also
    if job.queue is not None and job.queue != site["name"]:
        job.native[_QUEUE_OPTIONS[job.dialect]] = job.queue
    if job.processes != job.nodes:
        job.native["ntasks"] = str(job.processes)


def _make_do(job: ScriptJob, site: Site | None) -> None:
    """Elsewhere, an unsupported request is an error, and a flag without effect is reported in a notice."""
    if job.nodes > 1:
        raise errors.Unsatisfiable(
            f"the script asks for {job.nodes} nodes, and there is no {TITLES[job.dialect]} {_there(site)}",
            "ask for --nodes=1, or run it at a Slurm site",
        )
    if job.queue is not None and (site is None or job.queue != site["name"]):
        where = f"the site {site['name']!r}" if site is not None else "any site with room"
        job.notice(f"this yard has no {QUEUES[job.dialect]} {job.queue!r}: the job goes to {where}")
    if job.native:
        given = ", ".join(_shown(job.dialect, name) for name in job.native)
        job.notice(f"only {TITLES[job.dialect]} itself can use {given}: nothing is done about it here")
    job.native = {}
    job.cpus *= job.processes


def _shown(dialect: str, name: str) -> str:
    return f"--{name}" if dialect == "slurm" else f"-{name}"


def needed_program(text: str) -> str | None:
    """The program of Slurm that a shell script starts, if any. A mere mention is none."""
    if not Script(name="", text=text).is_shell:
        return None
    for line in text.splitlines():
        match = _COMMAND_PLACE.search(line.partition(" #")[0]) if not line.lstrip().startswith("#") else None
        if match:
            return match[1]
    return None


def make_specs(job: ScriptJob, after: Sequence[Mapping[str, list[int]]], host: str, home: str) -> list[dict[str, Any]]:
    """`after` has for each task the ids of the runs that it depends on: `after` and `after_any`. `host` and `home` are
    the submitter's; no tool leaves a job without a home."""
    common = _common(job, host, home)
    arrays: Sequence[dict[str, Any] | None] = job.tasks.mappings() if job.tasks else [None]
    return [
        {**common, **_files(job, array), **({"array": array} if array else {}), **parents}
        for array, parents in zip(arrays, after, strict=True)
    ]


def _common(job: ScriptJob, host: str, home: str) -> dict[str, Any]:
    optional = {
        "script": job.script, "site": job.site, "project": job.project, "priority": job.priority, "stop": job.stop,
        "retry": {"max": job.retry} if job.retry else None, "options": job.native or None,
    }  # fmt: skip
    return {
        "command": job.command,
        "name": job.name[:200],
        "cwd": job.cwd,
        "dialect": job.dialect,
        "env": {**job.carried.env, **_variables(job)},
        "origin": {"host": host, "env": {"HOME": home, **job.carried.origin}},
        "resources": _resources(job),
        **{name: value for name, value in optional.items() if value is not None},
    }


def _variables(job: ScriptJob) -> dict[str, str]:
    queue = job.queue or job.site
    named = {"slurm": "SLURM_JOB_PARTITION", "gridengine": "QUEUE"}[job.dialect]
    return {**job.variables, **({named: queue} if queue else {})}


def _resources(job: ScriptJob) -> dict[str, Any]:
    asked = {
        "nodes": job.nodes if job.nodes > 1 else None, "memory": job.memory, "gpus": job.gpus or None,
        "gpu_type": job.gpu_type, "time": job.time,
    }  # fmt: skip
    return {"cpus": job.cpus, **{name: value for name, value in asked.items() if value is not None}}


def _files(job: ScriptJob, array: Mapping[str, Any] | None) -> dict[str, Any]:
    """A file that other runs may write to gets whole lines from each; one of the run's own is written directly."""
    named = [pattern for pattern in (job.stdout, job.stderr) if pattern is not None]
    if set(named) == {NOTHING}:
        return {}
    task = array["index"] if array else None
    paths = [patterns.for_task(pattern, task, _WITHOUT_TASK[job.dialect]) for pattern in named]
    shared = any(is_shared(job, pattern) for pattern in named)
    return {**dict(zip(("stdout", "stderr"), paths, strict=False)), **({"open_mode": "append"} if shared else {})}


def is_shared(job: ScriptJob, pattern: str) -> bool:
    if pattern == NOTHING:
        return False
    if job.tasks and not patterns.tells_tasks_apart(pattern):
        return True
    return job.append and not patterns.tells_jobs_apart(pattern)
