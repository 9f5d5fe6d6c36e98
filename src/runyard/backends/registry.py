"""Backends by name, imported when they are asked for."""

from __future__ import annotations

import importlib

from runyard import errors, kinds
from runyard.backends.base import Backend
from runyard.model import fields


def load(name: str) -> type[Backend]:
    """The class of this name; ConfigError when there is none, or when it cannot be imported."""
    place = kinds.place(name)
    if place is None:
        raise errors.ConfigError(f"there is no backend {name!r}", fields.nearest(name, kinds.names()))
    try:
        found = _import(place)
    except Exception as error:
        raise errors.ConfigError(f"the backend {name!r} ({place}) cannot be loaded: {error!r}") from error
    if not (isinstance(found, type) and issubclass(found, Backend)):
        raise errors.ConfigError(f"the backend {name!r} ({place}) is not a runyard.backends.base.Backend")
    return found


def broken() -> dict[str, str]:
    """The names that cannot be loaded, and why: for `runyard doctor`."""
    found = {}
    for name in kinds.names():
        try:
            load(name)
        except errors.ConfigError as error:
            found[name] = error.message
    return found


def _import(place: str) -> object:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
