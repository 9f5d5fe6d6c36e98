"""The kinds of sites there are, by name, and where the backend of each is. Built-in ones and plug-ins come through the
same door; none is imported here, so that whoever only needs the names may ask."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping

from runyard import errors
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
    return sorted({**BUILT_IN, **plug_ins()})


def place(name: str) -> str | None:
    """`module:class`; None when there is no such kind."""
    return BUILT_IN.get(name) or plug_ins().get(name)


def check(name: str) -> None:
    if place(name) is None:
        raise errors.InvalidInput(f"there is no kind of site {name!r}", fields.nearest(name, names()))


@functools.cache
def plug_ins() -> Mapping[str, str]:
    from importlib.metadata import entry_points

    places = {}
    for point in entry_points(group=GROUP):
        if point.name in BUILT_IN:
            log.warning("the plug-in %s is ignored: %r is a built-in backend", point.value, point.name)
        else:
            places[point.name] = point.value
    return places
