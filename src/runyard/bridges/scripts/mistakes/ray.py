"""Slips in scripts that start Ray by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator

from runyard.bridges.scripts.job import Here, Notice
from runyard.bridges.scripts.mistakes import report
from runyard.bridges.scripts.script import Script

_PORT = re.compile(r"--(?:redis-)?port[= ](\d{4,5})\b")
_NODE_ADDRESS = re.compile(r"\bhostname\s+(?:--ip-address|-i)\b")
_PASSWORD = re.compile(r"--redis-password\b")
_START = re.compile(r"\bray\b[^;&|#]*\bstart\b")
_SLEEP = re.compile(r"(?:^|[;&|]|\bdo\b)\s*sleep\s+\d")
_ASKING = re.compile(r"\s*(?:until|while)\b")
_OWN_PORT = "take one by the job: $((20000 + SLURM_JOB_ID % 20000))"
_ASK = "ask until it answers: until ray status --address=$ip_head; do sleep 1; done"
_TOKEN = "leave it out: Ray needs no Redis any more, and asks for a token where RAY_AUTH_MODE=token is exported"


def _addresses(script: Script, here: Here) -> Iterator[Notice]:
    for number, line in enumerate(script.lines, 1):
        port = _PORT.search(line)
        if port and "ray" in script.text:
            yield report.at(number, f"two jobs on one node cannot both have port {port[1]}", _OWN_PORT)
        if _NODE_ADDRESS.search(line):
            text = "hostname --ip-address may print several addresses"
            yield report.at(number, text, "take the first: | cut -d ' ' -f 1")


def _password(script: Script, here: Here) -> Iterator[Notice]:
    for number, line in enumerate(script.lines, 1):
        if _PASSWORD.search(line):
            yield report.at(number, "everybody on the node reads the password in the list of processes", _TOKEN)


def _fixed_sleeps(script: Script, here: Here) -> Iterator[Notice]:
    """After Ray was started. What sleeps between two questions does it right."""
    started = asking = False
    for number, line in report.joined(script.lines):
        asking = asking or bool(_ASKING.match(line))
        if started and not asking and _SLEEP.search(line):
            yield report.at(number, "a sleep does not tell whether Ray is up by then: a slow node needs longer", _ASK)
        started = started or bool(_START.search(line))
        asking = asking and not re.search(r"\bdone\b", line)


FINDERS: tuple[report.InScript, ...] = (_addresses, _password, _fixed_sleeps)
