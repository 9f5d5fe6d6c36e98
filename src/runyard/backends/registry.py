"""Backends by name. Built-in ones and plug-ins come through the same door, and are imported when they are asked for."""

from __future__ import annotations

import functools
import importlib
import logging
from collections.abc import Mapping

from runyard import errors
from runyard.backends.base import Backend
from runyard.model import fields

GROUP = "runyard.backends"
BUILT_IN = {
    "local": "runyard.backends.local:LocalBackend",
    "ssh": "runyard.backends.ssh:SshBackend",
    "slurm": "runyard.backends.batch.lifecycle:SlurmBackend",
    "gridengine": "runyard.backends.batch.lifecycle:GridEngineBackend",
}

log = logging.getLogger(__name__)


def names() -> list[str]:
    return sorted({**BUILT_IN, **_plug_ins()})


def load(name: str) -> type[Backend]:
    """The class of this name; ConfigError when there is none, or when it cannot be imported."""
    place = BUILT_IN.get(name) or _plug_ins().get(name)
    if place is None:
        raise errors.ConfigError(f"there is no backend {name!r}", fields.nearest(name, names()))
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
    for name in names():
        try:
            load(name)
        except errors.ConfigError as error:
            found[name] = error.message
    return found


@functools.cache
def _plug_ins() -> Mapping[str, str]:
    from importlib.metadata import entry_points

    places = {}
    for point in entry_points(group=GROUP):
        if point.name in BUILT_IN:
            log.warning("the plug-in %s is ignored: %r is a built-in backend", point.value, point.name)
        else:
            places[point.name] = point.value
    return places


def _import(place: str) -> object:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
