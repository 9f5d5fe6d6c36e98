"""Slips in scripts of any language, and those of Python."""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Iterator

from runyard.bridges.scripts.job import Here, Notice
from runyard.bridges.scripts.mistakes import report
from runyard.bridges.scripts.script import Script

_BY_THE_SECOND = re.compile(r"%Y[\W_]?%m[\W_]?%d[\W_]{0,2}%H[\W_]?%M[\W_]?%S")
_GONE = {
    "ch-build": "ch-image build -t NAME FOLDER",
    "ch-builder2tar": "ch-convert NAME NAME.tar.gz",
    "ch-tar2dir": "ch-convert NAME.tar.gz FOLDER/NAME",
    "--redis-port": "--port",
    "ray.services.get_node_ip_address": "ray.util.get_node_ip_address",
}
_RAY_PASSWORD = re.compile(r"\bray\.init\([^)]*\bredis_password\s*=")
_LOOPS = ast.For | ast.While
_DEFINITIONS = ast.FunctionDef | ast.ClassDef
_PREPARED = re.compile(r"\bsignal\.signal\b|\batexit\b|\bfinally\s*:")


def _gone_words(script: Script, here: Here) -> Iterator[Notice]:
    for number, line in enumerate(script.lines, 1):
        for old, new in _GONE.items():
            if re.search(rf"(?<![\w-]){re.escape(old)}(?![\w-])", line):
                yield report.at(number, f"current versions have no {old} any more", f"write {new}")


def _same_second(script: Script, here: Here) -> Iterator[Notice]:
    for number, line in enumerate(script.lines, 1):
        if _BY_THE_SECOND.search(line):
            text = "runs that begin in the same second share what is named by the second"
            yield report.at(number, text, "add the id of the run to the name: RUNYARD_RUN_ID")


def _afs(script: Script, here: Here) -> Iterator[Notice]:
    for number, line in enumerate(script.lines, 1):
        if re.search(r"(?<![\w.])/afs/", line) and not os.path.isdir("/afs"):
            yield report.at(number, "jobs do not see AFS", "copy what is needed to a directory that they see, first")


def _old_password(script: Script, here: Here) -> Iterator[Notice]:
    for match in _RAY_PASSWORD.finditer(script.text):
        text = "ray.init of current versions has no redis_password any more"
        yield report.at(script.text.count("\n", 0, match.end()) + 1, text, "leave it out")


def _saved_at_the_end(script: Script, here: Here) -> Iterator[Notice]:
    """Numbers that a loop collects, and that are saved once it is over. What a function saves may be saved earlier."""
    if "savez" not in script.text or _PREPARED.search(script.text):
        return
    looped, late = False, 0
    for statement in _statements(script.text):
        saved = next(_saves(statement), 0)
        if saved and isinstance(statement, _LOOPS | _DEFINITIONS):
            return
        looped = looped or isinstance(statement, _LOOPS)
        late = late or (saved if looped else 0)
    if late:
        text = "what is saved only at the end is lost when the run is ended before, by its time limit or a cancel"
        yield report.at(late, text, "save it in each round of the loop, and write it over")


def _statements(text: str) -> Iterator[ast.stmt]:
    """Those of a script in Python that are executed one after the other, as far as today's Python reads it."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of the style of others
            body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return
    while body:
        statement = body.pop(0)
        if isinstance(statement, ast.With | ast.If | ast.Try):
            body = [*statement.body, *body]
        else:
            yield statement


def _saves(statement: ast.stmt) -> Iterator[int]:
    """The lines that save arrays of numpy."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith("savez"):
            yield node.lineno


FINDERS: tuple[report.InScript, ...] = (_gone_words, _same_second, _afs, _old_password, _saved_at_the_end)
