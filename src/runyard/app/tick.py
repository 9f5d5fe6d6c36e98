"""One tick: its scope, and its work for one site."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runyard import errors
from runyard.model.site import SiteSpec
from runyard.model.wire import AttemptKey
from runyard.settings import Settings

if TYPE_CHECKING:
    from runyard.agent.errands import Errands
    from runyard.agent.sites import Server

    Build = Callable[[SiteSpec, Errands], Server]

NODE_S = 20.0  # for the work of a tick from a node, and for waiting for others
LEAVE_S = 30.0  # after which it is ended
SOON_S = 0.1  # work that is due so soon belongs to the same pass


@dataclass(frozen=True, kw_only=True, slots=True)
class Tick:
    site: str | None
    directory: Path | None
    deadline: float  # monotonic
    ended: AttemptKey | None = None  # the attempt whose end a compute node reports

    @classmethod
    def build(cls, site: str | None, directory: Path | None, limit: float, ended: str | None) -> Tick:
        if ended is None:
            return cls(site=site, directory=directory, deadline=time.monotonic() + limit)
        return cls(site=site, directory=directory, deadline=time.monotonic() + NODE_S, ended=_key(ended))

    @property
    def bound(self) -> float | None:
        return LEAVE_S if self.ended is not None else None


def serve(tick: Tick, site: str, spec: SiteSpec, loaded: Settings, build: Build) -> None:
    """Until nothing is left to do now, or until the deadline. Output of running runs is not followed: that would keep
    the home locked."""
    from runyard.agent.errands import InlineErrands

    with contextlib.closing(build(_prepared(tick, site, spec, loaded), InlineErrands())) as agent:
        agent.tick()
        while not agent.stale and time.monotonic() < tick.deadline:
            due = agent.next_due(following=False)
            if due > time.monotonic() + SOON_S:
                return
            time.sleep(max(0.0, due - time.monotonic()))
            agent.tick()


def _prepared(tick: Tick, site: str, spec: SiteSpec, loaded: Settings) -> SiteSpec:
    if tick.ended is not None:
        return dataclasses.replace(spec, options={**spec.options, "max_jobs": "0"})
    from runyard.app import node_relay

    node_relay.keep(site, spec, loaded)
    return spec


def _key(directory: str) -> AttemptKey:
    """An attempt's directory ends with the run's number and its own: `…/17/a2`."""
    match = re.fullmatch(r".*/(\d+)/a(\d+)/?", directory)
    if match is None:
        raise errors.InvalidInput(f"--ended: {directory!r} is not an attempt's directory")
    return AttemptKey(run=int(match[1]), attempt=int(match[2]))
