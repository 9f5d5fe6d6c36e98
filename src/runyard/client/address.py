"""The address of a running yard, and the error of one that could not start."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class YardAddress:
    """The contents of `<home>/yard.json`, written by a running yard."""

    url: str
    pid: int
    version: str = ""


def complaint(text: str) -> tuple[str, str]:
    """The last `error: …` and its `fix: …` in the output of a runyard command."""
    message, fix = "", ""
    for line in text.splitlines():
        if line.startswith("error: "):
            message, fix = line.removeprefix("error: "), ""
        elif line.startswith("fix: ") and message:
            fix = line.removeprefix("fix: ")
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it said nothing")
    return message or f"the yard could not be started: {last}", fix
