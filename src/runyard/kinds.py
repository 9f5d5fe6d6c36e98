"""The kinds of sites by name, and the module of the backend or the dialect of each. Built-in ones and plug-ins are
found in the same way; none is imported here, so that listing the names is cheap."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping

from runyard import errors
from runyard.model import fields

GROUP = "runyard.backends"  # of entry points: `runyard.backends.base.Backend`
DIALECTS = "runyard.dialects"  # the same for schedulers: `runyard.backends.batch.dialect.Dialect`
BUILT_IN = {
    GROUP: {"local": "runyard.backends.local:LocalBackend", "ssh": "runyard.backends.ssh:SshBackend"},
    DIALECTS: {
        "slurm": "runyard.backends.batch.slurm:Slurm",
        "gridengine": "runyard.backends.batch.gridengine:GridEngine",
    },
}

log = logging.getLogger(__name__)


def names() -> list[str]:
    return sorted({name for group in BUILT_IN for name in (*BUILT_IN[group], *plug_ins(group))})


def place(name: str, group: str) -> str | None:
    """`module:class`; None if the group has no such kind."""
    return BUILT_IN[group].get(name) or plug_ins(group).get(name)


def check(name: str) -> None:
    if not any(place(name, group) for group in BUILT_IN):
        raise errors.InvalidInput(f"there is no kind of site {name!r}", fields.nearest(name, names()))


@functools.cache
def plug_ins(group: str = GROUP) -> Mapping[str, str]:
    from importlib.metadata import entry_points

    places = {}
    for point in entry_points(group=group):
        if any(point.name in built_in for built_in in BUILT_IN.values()):
            log.warning("the plug-in %s is ignored: %r is a built-in backend", point.value, point.name)
        else:
            places[point.name] = point.value
    return places
