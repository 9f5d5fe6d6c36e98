"""The OUTPUT_DIR that a script sets itself: runyard collects results from there.

Only a shell can know what a shell script will do. So only certain cases count: assignments at the beginning of a line,
of texts and of variables that are known at submit time. Anything else is reported in a notice with a fix.
"""

from __future__ import annotations

import os
import re

from runyard.bridges.scripts.job import Here, ScriptJob
from runyard.bridges.scripts.mistakes import report
from runyard.bridges.scripts.script import Script

RESULTS = "OUTPUT_DIR"
_BEFORE = re.compile(r"(?:export|declare\s+-x|setenv)\s+")
_PIECE = re.compile(r"\"[^\"]*\"|'[^']*'|[^\s;&|<>()#'\"]+")
_ASSIGNMENT = re.compile(rf"(?P<name>[A-Za-z_]\w*)(?P<by>=|[ \t]+)(?P<value>(?:{_PIECE.pattern})*)(?=[\s;]|$)\s*")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_FOR_SHELLS_ALONE = re.compile(r"[$`\\*?\[{]")
_MENTION = re.compile(rf"(?<![\w$]){RESULTS}=|\bsetenv\s+{RESULTS}\b")

Known = dict[str, str | None]  # None: its value is unknown


def follow(job: ScriptJob, here: Here) -> None:
    """The script's own assignment overrides all others."""
    script = Script(name=job.name, text=job.script or "")
    if not script.is_shell or RESULTS not in script.text:
        return
    known: Known = {**job.carried.env, **job.variables, "HOME": here.home, "USER": here.user, "PWD": job.cwd}
    is_set, place = _read(script, known)
    if place is not None:
        job.carried.env[RESULTS] = os.path.join(job.cwd, place)
    elif is_set:
        job.notice(
            f"the script sets {RESULTS} to a value that only a shell can expand: files there are not uploaded",
            f"write {RESULTS}= with a plain path at the beginning of a line, or leave it to runyard",
        )


def _read(script: Script, known: Known) -> tuple[bool, str | None]:
    """Whether the script sets it, and to what if that is sure."""
    is_set, place = False, None
    for line in (line for _, line in report.joined(script.lines) if not line.lstrip().startswith("#")):
        assigned, rest = _assigned(line)
        for name, raw in assigned:
            value = _value(raw, known)
            if name != RESULTS:
                known[name] = value
            elif RESULTS not in raw:  # else it is but a default for what runyard sets
                is_set, place = True, value
        if _MENTION.search(rest):
            is_set, place = True, None
    is_sure = place is not None and (os.path.isabs(place) or not _goes_elsewhere(script))
    return is_set, place if is_sure else None


def _assigned(line: str) -> tuple[list[tuple[str, str]], str]:
    """The assignments that a line begins with, and what follows them."""
    before = _BEFORE.match(line)
    position, by = before.end() if before else 0, " " if before and line.startswith("setenv") else "="
    found = []
    while (match := _ASSIGNMENT.match(line, position)) and match["by"].startswith(by):
        found.append((match["name"], match["value"]))
        position = match.end()
    return found, line[position:].partition(" #")[0]


def _value(raw: str, known: Known) -> str | None:
    pieces = [_piece(piece, known) for piece in _PIECE.findall(re.sub(r"^~(?=/)", "$HOME", raw))]
    return None if None in pieces else "".join(filter(None, pieces))


def _piece(raw: str, known: Known) -> str | None:
    if raw.startswith("'"):
        return raw[1:-1]
    text, values = raw.strip('"'), {name: known.get(name) for pair in _VARIABLE.findall(raw) for name in pair if name}
    if None in values.values() or _FOR_SHELLS_ALONE.search(_VARIABLE.sub("", text)):
        return None
    return _VARIABLE.sub(lambda match: values[match[1] or match[2]] or "", text)


def _goes_elsewhere(script: Script) -> bool:
    return any(re.match(r"\s*(cd|pushd)\b", line) for line in script.lines)
