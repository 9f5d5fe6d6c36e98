"""The settings of Rodan's form, by their labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from runyard import errors
from runyard.model import fields, native_units
from runyard.model.native_units import Writing

TIME, MEMORY, CPUS = "Maximum time (D-HH:MM)", "Maximum memory (MB)", "CPUs"
RESOURCES = {CPUS: "cpus", MEMORY: "memory", TIME: "time"}  # of a run, by the setting that asks for it
EMAIL = "Slurm Notification Email"
_TOKEN = "token"  # of the old component, which sent requests on to itself
LEAST = {
    "Maximum number of training epochs": 1,
    "Maximum number of samples per label": 100,
    "Patch height": 64,
    "Patch width": 64,
    MEMORY: 1024,
    CPUS: 1,
}
LABELS = (*LEAST, TIME, EMAIL)
_ADDRESS = re.compile(r"\w[\w.+-]*@[\w-]+(\.[\w-]+)+", re.ASCII)


def parse(given: object) -> dict[str, Any]:
    """The same settings, checked. Raises InvalidInput with one sentence."""
    if not isinstance(given, Mapping):
        raise errors.InvalidInput("settings: must be an object of labels and values")
    found = {label: value for label, value in given.items() if label != _TOKEN}
    for label, value in found.items():
        _check(label, value)
    return found


def mail(settings: Mapping[str, Any]) -> dict[str, str]:
    """Mail options of the scheduler: none without an address."""
    address = str(settings.get(EMAIL) or "").strip()
    return {"user": address, "type": "ALL"} if address else {}


def _check(label: str, value: object) -> None:
    if label not in LABELS:
        raise errors.InvalidInput(f"settings: {label!r} is no setting of this job; {fields.nearest(label, LABELS)}")
    if label in LEAST:
        _check_number(label, value)
    elif label == TIME:
        _check_time(value)
    elif not isinstance(value, str) or (value.strip() and not _ADDRESS.fullmatch(value.strip())):
        raise errors.InvalidInput(f"settings: {label!r} is no mail address: {value!r:.80}")


def _check_number(label: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise errors.InvalidInput(f"settings: {label!r} must be a whole number, not {value!r:.80}")
    if value < LEAST[label]:
        raise errors.InvalidInput(f"settings: {label!r} must be at least {LEAST[label]}, not {value}")


def _check_time(value: object) -> None:
    try:
        if isinstance(value, str) and native_units.parse_time(value, Writing.SLURM, TIME) is not None:
            return
    except errors.InvalidInput:
        pass
    raise errors.InvalidInput(f"settings: {TIME!r} must be a time such as 0-06:00, not {value!r:.80}")
