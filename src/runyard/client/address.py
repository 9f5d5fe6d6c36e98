"""Where a yard answers, and what one says that cannot."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """What a running yard leaves in `<home>/yard.json`."""

    url: str
    pid: int
    version: str = ""


def complaint(text: str) -> tuple[str, str]:
    """The last `error: …` and its `fix: …` in what a runyard command wrote."""
    message, fix = "", ""
    for line in text.splitlines():
        if line.startswith("error: "):
            message, fix = line.removeprefix("error: "), ""
        elif line.startswith("fix: ") and message:
            fix = line.removeprefix("fix: ")
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it said nothing")
    return message or f"the yard could not be started: {last}", fix
