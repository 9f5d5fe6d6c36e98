"""Free disk space where runs write: with too little of it no new run is started."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from runyard.agent.errands import Errands
from runyard.hosts.base import Host
from runyard.model import units
from runyard.model.disk_reserve import USUAL, DiskReserve
from runyard.model.wire import Disk
from runyard.runner import scratch
from runyard.runner.spec import BadSpec

LANE = "disks"
LOOK_S, FAR_LOOK_S = 1.0, 30.0  # between two checks; on another machine each is a round trip


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """The disk settings of a node."""

    scratch: str = ""  # where runs get their scratch directory; empty: see `runner.scratch`
    reserve: DiskReserve = USUAL


ANY_ROOM = Room()


class Disks:
    def __init__(
        self, host: Host, paths: Sequence[str], reserve: DiskReserve, errands: Errands, clock: Callable[[], float]
    ) -> None:
        self._host, self._paths, self._reserve = host, list(paths), reserve
        self._errands, self._clock = errands, clock
        self._look_at = float("-inf")
        self._worst: Disk | None = None
        self._cache: tuple[int | None, int | None] = (None, None)

    def watch_scratch(self, base: str) -> None:
        """On the machine where runs execute. Directories of dead runners are deleted there if it is this machine; on
        others the next runner does it."""
        self._paths.append(base)
        if not self._host.copies:
            self._errands.send(LANE, lambda: scratch.clear(os.fsencode(base)), lambda _, error: None)

    def worst(self) -> Disk | None:
        """The disk that is closest to its reserve, as last measured; None if unknown."""
        if self._clock() >= self._look_at:
            self._look()
        size, limit = self._cache
        return self._worst and dataclasses.replace(self._worst, cache=size, cache_limit=limit)

    def look_again(self) -> None:
        """Measure at the next call: a write failed for lack of space."""
        self._look_at = float("-inf")

    def note_cache(self, size: int, limit: int) -> None:
        """The size and limit of the cache, as measured by its cleanup."""
        self._cache = size, limit

    def trouble(self) -> str:
        """Why no run may be started now; empty if runs may start."""
        disk = self.worst()
        if disk is None or not disk.is_full:
            return ""
        return f"{units.show_size(disk.free)} free in {disk.path}, {units.show_size(disk.kept)} are reserved"

    def _look(self) -> None:
        if self._host.copies:
            self._look_at = self._clock() + FAR_LOOK_S
            self._errands.send(LANE, lambda: self._host.room(self._paths), self._take)
        else:
            self._look_at = self._clock() + LOOK_S
            with contextlib.suppress(OSError):
                self._take(self._host.room(self._paths), None)

    def _take(self, found: Mapping[str, tuple[int, int]] | None, error: Exception | None) -> None:
        """A host that does not answer changes nothing."""
        if isinstance(error, OSError) or found is None:
            return
        if error is not None:
            raise error
        disks = [Disk(path=path, free=free, kept=self._reserve.of(total)) for path, (free, total) in found.items()]
        self._worst = min(disks, key=lambda disk: disk.free - disk.kept, default=None)


def scratch_base(room: Room, environ: Mapping[str, str]) -> str:
    """The scratch directory of runs on a machine with this environment, as far as known without them."""
    env = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
    try:
        return os.fsdecode(scratch.expanded(os.fsencode(room.scratch), env) if room.scratch else scratch.bases(env)[0])
    except BadSpec:  # each run reports it
        return os.fsdecode(scratch.bases({})[0])
