"""Signals to a run, and how long it may take to react."""

from __future__ import annotations

from runyard.model import fields, units

KNOWN = ("TERM", "INT", "USR1", "USR2", "HUP")


def parse(value: object, where: str) -> str:
    return fields.one_of(str(value).upper().removeprefix("SIG"), where, KNOWN)


def parse_grace(value: object, where: str) -> int:
    return 0 if value in (0, "0", "0s") else fields.at_most(units.parse_duration(value, where), where, 86400)
