"""Names of output files: `%A_%a %x` of Slurm and `$JOB_ID` of Grid Engine, both in the one way that run specs have.

A spec knows `%j` (the run), `%A` (the first run of its array), `%N` (the node) and `%%`, because only the runner can
fill them in. On the way there is one more, `%a`, the task: `for_task` fills it in. All that the submitter knows is
filled in here.
"""

from __future__ import annotations

import re
from collections.abc import Callable

NO_TASK = 4294967294  # what Slurm writes for the task of a job that is no array
_SLURM = re.compile(r"%(\d*)([A-Za-z%])")
_LEFT = {"j": "j", "J": "j", "A": "A", "a": "a", "N": "N"}  # Slurm's symbol → the spec's
_GRIDENGINE = re.compile(r"\$(HOME|USER|JOB_ID|JOB_NAME|HOSTNAME|TASK_ID)\b")
_GRIDENGINE_LEFT = {"JOB_ID": "%A", "TASK_ID": "%a", "HOSTNAME": "%N"}
_TASK = re.compile(r"%(?:%|(\d*)a)")


def from_slurm(pattern: str, *, name: str, user: str) -> str:
    """A pattern with a backslash is a plain name, once the backslashes are gone."""
    if "\\" in pattern:
        return escape(pattern.replace("\\", ""))
    known = {"x": name, "u": user, "n": "0", "t": "0", "s": "batch"}

    def replace(match: re.Match[str]) -> str:
        width, symbol = match[1], match[2]
        if symbol in _LEFT:
            return f"%{width if symbol != 'N' else ''}{_LEFT[symbol]}"
        return escape(known.get(symbol, match[0])) if symbol != "%" else "%%"

    return _between(_SLURM, pattern, replace)


def from_gridengine(path: str, *, name: str, user: str, home: str) -> str:
    """`$HOME`, `$JOB_ID` and similar; every other `$` is kept."""
    known = {"HOME": home, "USER": user, "JOB_NAME": name}
    return _between(_GRIDENGINE, path, lambda match: _GRIDENGINE_LEFT.get(match[1]) or escape(known[match[1]]))


def escape(text: str) -> str:
    return text.replace("%", "%%")


def tells_tasks_apart(pattern: str) -> bool:
    """Whether each task of an array has a file of its own."""
    return bool(re.search(r"%\d*[ja]", pattern.replace("%%", "")))


def tells_jobs_apart(pattern: str) -> bool:
    return bool(re.search(r"%\d*[jA]", pattern.replace("%%", "")))


def for_task(pattern: str, task: int | None, without: int) -> str:
    """`without` stands for the task of a job that is no array."""

    def replace(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return match[0]
        return str(without if task is None else task).zfill(int(match[1] or 0))

    return _TASK.sub(replace, pattern)


def _between(symbols: re.Pattern[str], text: str, replace: Callable[[re.Match[str]], str]) -> str:
    """Replace the symbols, and double every other percent sign."""
    parts, end = [], 0
    for match in symbols.finditer(text):
        parts += [escape(text[end : match.start()]), replace(match)]
        end = match.end()
    return "".join([*parts, escape(text[end:])])
