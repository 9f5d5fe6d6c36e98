"""Slips in how shells read a script, and sbatch the lines that are for it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from runyard.bridges.scripts import directives
from runyard.bridges.scripts.job import Here, Notice
from runyard.bridges.scripts.mistakes import report
from runyard.bridges.scripts.script import Script

_ASSIGNMENT = re.compile(r"^([A-Za-z_]\w*)=(?!\$\()(?:\"[^\"]*\"|'[^']*'|[^\s;&|]*)\s*(?:#.*)?$")
_EXPORTING = re.compile(r"\b(?:export|declare\s+-\w*x\w*|typeset\s+-\w*x\w*)\s+([^;&|\n]*)")
_OPTION_FIRST = re.compile(r"\s*-(-?\w|-\s)")
_SPACED = re.compile(r"#\s+SBATCH\s+-")


def _late_directives(script: Script, here: Here) -> Iterator[Notice]:
    for number in directives.late_sbatch_lines(script.text):
        yield report.at(number, "an #SBATCH line after the first command counts for nothing", "move it to the top")
    for number, line in enumerate(script.lines, 1):
        if _SPACED.match(line):
            yield report.at(number, f"{line[:40]!r} is a comment to Slurm", "write #SBATCH without a blank")


def _broken_lines(script: Script, here: Here) -> Iterator[Notice]:
    """A command over several lines, without the backslashes that join them."""
    if "<<" in script.text:  # a text of its own may be there
        return
    before = ""
    for number, line in enumerate(script.lines, 1):
        goes_on = before and not before.startswith("#") and _OPTION_FIRST.match(line)
        if goes_on and not before.endswith("\\"):
            text = f"it begins with {line.split()[0]!r}, as if it went on with the line before"
            yield report.at(number, text, "end the line before with \\")
        before = line.strip()


def _not_exported(script: Script, here: Here) -> Iterator[Notice]:
    """Set but not exported: the programs that the script starts do not see it."""
    if re.search(r"\bset\s+-\w*a|allexport", script.text):
        return
    exported = {word.partition("=")[0] for match in _EXPORTING.finditer(script.text) for word in match[1].split()}
    for number, line in enumerate(script.lines, 1):
        match = _ASSIGNMENT.match(line.strip())
        if match and match[1] not in exported and not re.search(rf"\$\{{?{match[1]}\b", script.text):
            text = f"{match[1]} is set, but not exported: the programs that the script starts do not see it"
            yield report.at(number, text, f"write export {line.strip()}")


def _copied_directory(script: Script, here: Here) -> Iterator[Notice]:
    for number, words in report.commands(script, "cp"):
        options = [word for word in words[1:] if word.startswith("-")]
        if any(re.match(r"-\w*[rRa]|--(recursive|archive)", option) for option in options):
            continue
        for source in [word for word in words[1:] if not word.startswith("-")][:-1]:
            if os.path.isdir(os.path.join(here.directory, source)):
                yield report.at(number, f"cp leaves out {source}, which is a directory", f"write cp -r {source} …")


FINDERS: tuple[report.InScript, ...] = (_late_directives, _broken_lines, _not_exported, _copied_directory)
