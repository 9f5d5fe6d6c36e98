"""The ways of writing requests that are known, by name. A format is made only where an intake speaks it."""

from __future__ import annotations

from importlib import import_module

from runyard import errors
from runyard.model import fields
from runyard.model.request import Format

KNOWN = {
    "tasks": "runyard.bridges.training_runs.messages:Tasks",
    "celery": "runyard.bridges.training_runs.messages:Celery",
}


def load(name: str, where: str) -> Format:
    """Raises ConfigError for a name that is not known."""
    if name not in KNOWN:
        raise errors.ConfigError(f"{where}: the format {name!r} is not known", fields.nearest(name, KNOWN))
    module, _, kind = KNOWN[name].partition(":")
    made: Format = getattr(import_module(module), kind)()
    return made
