"""The queue as qstat shows it."""

from __future__ import annotations

import datetime
import fnmatch
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from runyard import errors
from runyard.bridges.scripts import jobs
from runyard.bridges.scripts.jobs import Wait
from runyard.model import ranges

HEADER = f"job-ID  prior   {'name':10s} {'user':12s} state {'submit/start at':19s} {'queue':30s} slots ja-task-ID"
RULER = "-" * 113
DETAILS_RULER = "=" * 62
NOT_STARTED = ("launch", "staging", "rejected")  # what Grid Engine keeps in its queue as an error
WAITING, RUNNING, HELD = ("qw", "hqw", "Eqw"), ("r", "dr"), ("hqw",)
KINDS = {"p": WAITING, "r": RUNNING, "a": (*WAITING, *RUNNING), "h": HELD, "hj": HELD, "hd": HELD}  # others never are

Run = Mapping[str, Any]


def is_in_error(run: Run) -> bool:
    """Only for jobs of qsub: users of `runyard submit` find failed runs elsewhere, and do not clear a queue."""
    return run["dialect"] == "gridengine" and run["state"] == "failed" and run["reason"] in NOT_STARTED


def state(run: Run) -> str:
    if is_in_error(run):
        return "Eqw"
    if run["cancel_requested"]:
        return "dr"
    if run["state"] == "running":
        return "r"
    return "hqw" if jobs.waits_for(run) is Wait.OTHERS else "qw"


def is_of(run: Run, owners: Iterable[str]) -> bool:
    """Whether it belongs to one of these users, who may be patterns."""
    return any(fnmatch.fnmatchcase(run["owner"], owner) for owner in owners)


def read_states(text: str) -> set[str]:
    """Filter the queue by `-s prs`."""
    if not re.fullmatch(r"(h[uoshdja]?|[prsa])+", text):
        fix = "there are p, r, s, a and h; runyard ls shows those that ended"
        raise errors.InvalidInput(f"qstat: -s {text} is not supported", fix)
    return {state for kind in re.findall(r"h[uoshdja]?|.", text) for state in KINDS.get(kind, ())}


def read_groups(text: str | None) -> bool:
    """Whether each task has a line of its own."""
    if text not in (None, "d"):
        raise errors.InvalidInput(f"qstat: -g {text} is not supported", "runyard site list shows sites and their slots")
    return text == "d"


def lines(runs: Iterable[Run], *, by_task: bool) -> list[str]:
    """Those that run first, then those that wait; nothing at all for an empty queue."""
    ordered = sorted(runs, key=lambda run: (state(run) not in ("r", "dr"), run["id"]))
    rows = [[run] for run in ordered] if by_task else _together(ordered)
    return [HEADER, RULER, *map(_line, rows)] if rows else []


def _together(runs: Iterable[Run]) -> list[list[Run]]:
    rows: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        waits = run["array"] and state(run) in ("qw", "hqw")
        rows.setdefault((jobs.array_id(run), state(run)) if waits else (run["id"],), []).append(run)
    return list(rows.values())


def _line(row: Sequence[Run]) -> str:
    run = row[0]
    queue = f"{run['site']}@{run['node']}" if state(run) in ("r", "dr") and run["node"] else ""
    begun = (run["started_at"] if queue else None) or run["created_at"]
    prior = 0.5 + run["priority"] / 2000
    slots = run["resources"].get("cpus", 1)
    return (
        f"{jobs.array_id(run):7d} {prior:7.5f} {jobs.name(run):10.10s} {run['owner']:12.12s} {state(run):5s} "
        f"{when(begun)} {queue:30.30s} {slots:5d} {_tasks(row)}"
    ).rstrip()


def _tasks(row: Sequence[Run]) -> str:
    """`9-40:1` for those that wait, as far as one range says it."""
    if not row[0]["array"]:
        return ""
    indexes, step = [run["array"]["index"] for run in row], row[0]["array"]["step"]
    if len(indexes) <= 2:
        return ",".join(map(str, indexes))
    if indexes == list(range(indexes[0], indexes[-1] + 1, step)):
        return f"{indexes[0]}-{indexes[-1]}:{step}"
    return ranges.show(indexes)


def when(text: str) -> str:
    return datetime.datetime.fromisoformat(text).astimezone().strftime("%m/%d/%Y %H:%M:%S")


def details(runs: Sequence[Run], spec: Mapping[str, Any]) -> list[str]:
    """`qstat -j`: all about one job, given its runs and the spec of the first."""
    return [DETAILS_RULER, *(f"{name + ':':27s} {value}" for name, value in _facts(runs, spec)), *_errors(runs)]


def _facts(runs: Sequence[Run], spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    run, env = runs[0], spec.get("env", {})
    yield "job_number", str(jobs.array_id(run))
    yield "submission_time", datetime.datetime.fromisoformat(run["created_at"]).astimezone().strftime("%c")
    yield "owner", run["owner"]
    yield "sge_o_home", env.get("SGE_O_HOME", "")
    yield "sge_o_workdir", env.get("SGE_O_WORKDIR", "")
    yield "cwd", spec.get("cwd") or ""
    for name, flag in (("stdout_path_list", "stdout"), ("stderr_path_list", "stderr")):
        if spec.get(flag):
            yield name, f"NONE:NONE:{spec[flag]}"
    yield "job_name", jobs.name(run)
    yield "hard_queue_list", run["site"] or "any"
    yield "env_list", ",".join(name for name in env if not name.startswith("SGE_O_"))
    if spec.get("command"):
        yield "job_args", shlex.join(spec["command"])
    array = run["array"]
    if array:
        yield "job-array tasks", f"{array['first']}-{array['last']}:{array['step']}"
    waiting = [other for other in runs if state(other) in ("qw", "hqw") and other["detail"]]
    if waiting:
        yield "scheduling info", waiting[0]["detail"]


def _errors(runs: Sequence[Run]) -> Iterator[str]:
    for run in runs:
        if is_in_error(run):
            task = run["array"]["index"] if run["array"] else 1
            ended = when(run["ended_at"] or run["created_at"])
            yield f"error reason{task:11d}:      {ended} [{run['node'] or '-'}]: error: {run['detail']}"
    if any(is_in_error(run) for run in runs):
        yield f"{'scheduling info:':27s} Job is in error state"
