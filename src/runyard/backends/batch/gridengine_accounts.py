"""Parse qacct: jobs that have ended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from runyard import errors
from runyard.backends.base import Ending
from runyard.backends.batch.dialect import Native, Stage
from runyard.model import native_units, units
from runyard.model.native_units import Writing

RULER = re.compile(r"^={20,}\s*$", re.MULTILINE)
# What the word `failed` of an account begins with, see sge_status(5). Others say nothing about whose fault it was.
FAILURES: dict[int, Ending] = {
    **dict.fromkeys((1, 3, 4, 5, 6, 7, 8, 9, 10, 11), "launch"),  # on the way to the job: spool, prolog, …
    **dict.fromkeys((18, 19, 20, 21), "node_lost"),  # the shepherd was killed, or the host knows of no such job
    **dict.fromkeys((24, 25), "preempted"),  # taken away to be rescheduled, which only an operator can order
    **dict.fromkeys((26, 27, 28, 29), "launch"),  # its output file, its shell, its directory
    **dict.fromkeys((31, 32, 33, 34, 35, 36, 38), "launch"),
    37: "timeout",  # a limit that the qmaster enforced: of time, unless the memory says otherwise
}
LIMIT_ENFORCED = 37
AFTER_JOB = 100  # it died by a signal

SIGKILL_STATUS = 128 + 9


def parse(text: str) -> list[Native]:
    return [_account(dict(_pairs(block))) for block in RULER.split(text) if block.strip()]


def _pairs(block: str) -> Iterable[tuple[str, str]]:
    for line in block.strip().splitlines():
        name, _, value = line.strip().partition(" ")
        yield name, value.strip()


def _account(said: Mapping[str, str]) -> Native:
    task = said.get("taskid", "undefined")
    number = said.get("jobnumber", "")
    failed = int(re.match(r"\d*", said.get("failed", ""))[0] or 0)  # type: ignore[index]
    status = int(re.match(r"\d*", said.get("exit_status", ""))[0] or 0)  # type: ignore[index]
    return Native(
        name=said.get("jobname", ""),
        task=int(task) if task.isdigit() else 1,
        id=f"{number}.{task}" if task.isdigit() else number,
        stage=Stage.OVER,
        word="failed " + re.sub(r"\s*:\s*", ": ", said["failed"]) if failed else "finished",
        node=said.get("hostname", ""),
        ending=_ending(failed, status, said),
        numbers=_numbers(status, said),
    )


def _ending(failed: int, status: int, said: Mapping[str, str]) -> Ending | None:
    if failed == LIMIT_ENFORCED and _is_over_memory(said):
        return "oom"
    if failed == AFTER_JOB and status == SIGKILL_STATUS:
        return "external"  # only qdel and users with a shell on the node send this signal to a runner
    return FAILURES.get(failed)


def _is_over_memory(said: Mapping[str, str]) -> bool:
    limit = re.search(r"h_vmem=([\d.]+[KMGTkmgt]?)", said.get("category", ""))
    used = re.match(r"([\d.]+)\s*([KMGT]?)B?$", said.get("maxvmem", ""))
    if limit is None or used is None:
        return False
    try:
        allowed = native_units.parse_size(limit[1], Writing.GRIDENGINE) or 0
        slots = int(said.get("slots", "1"))
        return units.parse_size(used[1] + used[2]) >= allowed * slots
    except (errors.InvalidInput, ValueError):
        return False


def _numbers(status: int, said: Mapping[str, str]) -> str:
    parts = [f"exit status {status}"] if status else []
    wall = re.match(r"[\d.]+", said.get("ru_wallclock", ""))
    if wall:
        parts.append(f"after {units.show_duration(float(wall[0]))}")
    if said.get("maxvmem", "0.000B") != "0.000B":
        parts.append(f"at most {said['maxvmem']} of virtual memory")
    return ", ".join(parts)
