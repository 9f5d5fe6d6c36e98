"""The queue as squeue shows it."""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from runyard import errors
from runyard.bridges.scripts import answers, jobs
from runyard.bridges.scripts.jobs import Wait
from runyard.model import ranges

SHORT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
STATES = {"PENDING": "PD", "RUNNING": "R", "COMPLETING": "CG"}
_OF_SLURM_ALONE = {"CONFIGURING": "CF", "SUSPENDED": "S", "REQUEUED": "RQ", "RESIZING": "RS", "STOPPED": "ST"}
_BY_WORD = {word: name for name, short in {**STATES, **_OF_SLURM_ALONE}.items() for word in (name, short)}
REASONS = {Wait.ROOM: "Resources", Wait.OTHERS: "Dependency", Wait.TURN: "JobArrayTaskLimit"}
_COLUMN = re.compile(r"%(\.?)(\d*)([A-Za-z])")

Run = Mapping[str, Any]
Row = Sequence[Run]  # runs that share a line: tasks of an array that wait alike


def state(run: Run) -> str:
    if run["cancel_requested"]:
        return "COMPLETING"
    return "RUNNING" if run["state"] == "running" else "PENDING"


def reason(run: Run) -> str:
    """Why it waits."""
    return REASONS[jobs.waits_for(run)] if run["state"] == "queued" else "None"


def read_states(words: Iterable[str]) -> list[str]:
    """Those that are wanted, by their long names: `PD,running`. None for all."""
    given = list(words)
    unknown = [word for word in given if word.upper() not in (*_BY_WORD, "ALL")]
    if unknown:
        raise errors.InvalidInput(f"invalid job state specified: {unknown[0]}", f"there are: {', '.join(STATES)}")
    return [] if "ALL" in map(str.upper, given) else [_BY_WORD[word.upper()] for word in given]


def lines(runs: Iterable[Run], form: str, now: datetime.datetime, *, header: bool, by_task: bool) -> list[str]:
    """Waiting ones first, as squeue has them."""
    waiting = [run for run in runs if state(run) == "PENDING"]
    others = [run for run in runs if state(run) != "PENDING"]
    rows = [*([[run] for run in waiting] if by_task else _together(waiting)), *([run] for run in others)]
    shown = [_fill(form, functools.partial(_value, row=row, now=now)) for row in rows]
    return [_fill(form, lambda letter: _column(letter)[0]), *shown] if header else shown


def _together(waiting: Iterable[Run]) -> list[list[Run]]:
    """Tasks of one array that wait for the same reason are one line."""
    rows: dict[tuple[Any, ...], list[Run]] = {}
    for run in waiting:
        key = (jobs.array_id(run), reason(run)) if run["array"] else (run["id"],)
        rows.setdefault(key, []).append(run)
    return list(rows.values())


def _fill(form: str, value: Callable[[str], str]) -> str:
    def replace(match: re.Match[str]) -> str:
        text, width = value(match[3]), int(match[2] or 0)
        if not width:
            return text
        return text[:width].rjust(width) if match[1] else text[:width].ljust(width)

    return _COLUMN.sub(replace, form).rstrip()


def _value(letter: str, row: Row, now: datetime.datetime) -> str:
    return _column(letter)[1](row, now)


def _column(letter: str) -> tuple[str, Callable[[Row, datetime.datetime], str]]:
    if letter not in COLUMNS:
        raise errors.InvalidInput(f"--format: %{letter} is not supported", f"there are: {' '.join(COLUMNS)}")
    return COLUMNS[letter]


def _id(row: Row) -> str:
    if len(row) == 1:
        return answers.slurm_id(row[0])
    return f"{jobs.array_id(row[0])}_[{_tasks(row)}]"


def _tasks(row: Row) -> str:
    array = row[0]["array"]
    if not array:
        return "N/A"
    return ranges.show(run["array"]["index"] for run in row) + _limit(row)


def _limit(row: Row) -> str:
    """Shown only for several tasks: those that wait."""
    limit = row[0]["array"].get("limit")
    return f"%{limit}" if limit and len(row) > 1 else ""


def _elapsed(row: Row, now: datetime.datetime) -> str:
    started = row[0]["started_at"]
    if not started or state(row[0]) == "PENDING":
        return "0:00"
    return clock(max(0, int((now - datetime.datetime.fromisoformat(started)).total_seconds())))


def clock(seconds: int) -> str:
    """`1:05`, `2:00:00`, `3-04:00:00`."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}-{hour:02}:{minute:02}:{second:02}"
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


def _time_limit(row: Row) -> str:
    asked = row[0]["resources"].get("time")
    return clock(asked) if asked else "UNLIMITED"


def _place(row: Row) -> str:
    return row[0]["node"] or "" if state(row[0]) != "PENDING" else f"({reason(row[0])})"


def _when(text: str | None) -> str:
    return datetime.datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%dT%H:%M:%S") if text else "N/A"


COLUMNS: dict[str, tuple[str, Callable[[Row, datetime.datetime], str]]] = {
    "i": ("JOBID", lambda row, now: _id(row)),
    "A": ("JOBID", lambda row, now: str(row[0]["id"])),
    "F": ("ARRAY_JOB_ID", lambda row, now: str(jobs.array_id(row[0]))),
    "K": ("ARRAY_TASK_ID", lambda row, now: _tasks(row)),
    "P": ("PARTITION", lambda row, now: row[0]["site"] or "any"),
    "j": ("NAME", lambda row, now: jobs.name(row[0])),
    "u": ("USER", lambda row, now: row[0]["owner"]),
    "t": ("ST", lambda row, now: STATES[state(row[0])]),
    "T": ("STATE", lambda row, now: state(row[0])),
    "M": ("TIME", _elapsed),
    "l": ("TIME_LIMIT", lambda row, now: _time_limit(row)),
    "D": ("NODES", lambda row, now: "1"),
    "C": ("CPUS", lambda row, now: str(row[0]["resources"].get("cpus", 1))),
    "N": ("NODELIST", lambda row, now: row[0]["node"] or ""),
    "R": ("NODELIST(REASON)", lambda row, now: _place(row)),
    "r": ("REASON", lambda row, now: reason(row[0]) if state(row[0]) == "PENDING" else "None"),
    "Q": ("PRIORITY", lambda row, now: str(row[0]["priority"])),
    "V": ("SUBMIT_TIME", lambda row, now: _when(row[0]["created_at"])),
    "S": ("START_TIME", lambda row, now: _when(row[0]["started_at"])),
}
