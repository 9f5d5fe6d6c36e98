"""How a mistake is reported, and how scripts are searched for one."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator

from runyard.bridges.scripts.job import Here, Notice, ScriptJob
from runyard.bridges.scripts.script import Script

InScript = Callable[[Script, Here], Iterator[Notice]]
InJob = Callable[[ScriptJob, Here], Iterator[Notice]]


def at(number: int, text: str, fix: str) -> Notice:
    return Notice(text=f"line {number} of the script: {text}", fix=fix)


def joined(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Each line with its number; those that backslashes join as one, with the number of the first."""
    whole, begun = "", 0
    for number, line in enumerate(lines, 1):
        begun = begun or number
        whole += line.removesuffix("\\")
        if not line.endswith("\\"):
            yield begun, whole
            whole, begun = "", 0


def commands(script: Script, program: str) -> Iterator[tuple[int, list[str]]]:
    """Each use of a program with its words."""
    for number, line in joined(script.lines):
        found = words(line)
        if found and os.path.basename(found[0]) == program:
            yield number, found


def words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []
