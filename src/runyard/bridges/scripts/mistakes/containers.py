"""Slips in the use of Charliecloud."""

from __future__ import annotations

import os
from collections.abc import Iterator

from runyard.bridges.scripts.job import Here, Notice
from runyard.bridges.scripts.mistakes import report
from runyard.bridges.scripts.script import Script


def _containers(script: Script, here: Here) -> Iterator[Notice]:
    for number, words in report.commands(script, "ch-run"):
        if "--set-env" not in words:
            yield report.at(number, "ch-run does not apply the ENV of the image", "add --set-env without a value")
        command = [word for word in words[1:] if not word.startswith("-")]
        if "--" in words and len(command) > 1 and words.index("--") > words.index(command[1]):
            yield report.at(number, "the -- is handed to the program", "write ch-run [options] IMAGE -- COMMAND …")
        for word in words:
            name, _, path = word.partition("=")
            if name == "--set-env" and path:
                yield from _in_env_file(os.path.join(here.directory, path))


def _in_env_file(path: str) -> Iterator[Notice]:
    """ch-run takes each line as it stands."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return
    for number, line in enumerate(lines, 1):
        where = f"{os.path.basename(path)} line {number}"
        if line.startswith(("#", "export ")) or (line.strip() and "=" not in line):
            yield Notice(text=f"{where}: ch-run knows neither comments nor export", fix="leave only NAME=value")
        elif '"' in line.partition("=")[2]:
            yield Notice(text=f"{where}: ch-run keeps the double quotes", fix="remove them")


FINDERS: tuple[report.InScript, ...] = (_containers,)
