"""Formats of requests, by name. A format is created only if an intake uses it."""

from __future__ import annotations

from importlib import import_module

from runyard import errors
from runyard.model import fields
from runyard.model.request import Format

KNOWN = {
    "tasks": "runyard.bridges.training_runs.messages:TrainingRunFormat",
    "celery": "runyard.bridges.training_runs.messages:Celery",
}


def load(name: str, where: str) -> Format:
    """Raises ConfigError for an unknown name."""
    if name not in KNOWN:
        raise errors.ConfigError(f"{where}: the format {name!r} is not known", fields.nearest(name, KNOWN))
    module, _, kind = KNOWN[name].partition(":")
    made: Format = getattr(import_module(module), kind)()
    return made
