"""Backends by name, imported when needed."""

from __future__ import annotations

import importlib
from typing import TypeVar

from runyard import errors, kinds
from runyard.backends.base import Backend
from runyard.model import fields

T = TypeVar("T")


def load(name: str) -> type[Backend]:
    """The class of this name; ConfigError when there is none, or when it cannot be imported."""
    place = kinds.place(name, kinds.GROUP)
    if place is not None:
        return _load(name, place, Backend)  # type: ignore[type-abstract]  # mypy: only what can be made
    place = kinds.place(name, kinds.DIALECTS)
    if place is None:
        raise errors.ConfigError(f"there is no backend {name!r}", fields.nearest(name, kinds.names()))
    return _of_dialect(name, place)


def broken() -> dict[str, str]:
    """The names that cannot be loaded, and why: for `runyard doctor`."""
    found = {}
    for name in kinds.names():
        try:
            load(name)
        except errors.ConfigError as error:
            found[name] = error.message
    return found


def _of_dialect(name: str, place: str) -> type[Backend]:
    from runyard.backends.batch import dialect, lifecycle  # here: most sites have no scheduler

    return lifecycle.backend_of(_load(name, place, dialect.Dialect))  # type: ignore[type-abstract]


def _load(name: str, place: str, base: type[T]) -> type[T]:
    try:
        found = _import(place)
    except Exception as error:
        raise errors.ConfigError(f"the backend {name!r} ({place}) cannot be loaded: {error!r}") from error
    if not (isinstance(found, type) and issubclass(found, base)):
        raise errors.ConfigError(f"the backend {name!r} ({place}) is not a {base.__module__}.{base.__qualname__}")
    return found


def _import(place: str) -> object:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
