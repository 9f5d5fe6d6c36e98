"""The slots of a site: which attempt holds which cpus, memory and GPUs. A run never starts without its slots."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from runyard.model.resources import SLOTS, Capacity, Resources
from runyard.model.wire import AttemptKey


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """The resources that one attempt holds."""

    resources: Resources
    gpus: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        asked = {name: getattr(self.resources, name) for name in SLOTS}
        return {**asked, "gpus": list(self.gpus)}


class Slots:
    def __init__(self, total: Capacity) -> None:
        self.total = total
        self.free = total
        self._held: dict[AttemptKey, Grant] = {}

    @property
    def is_full(self) -> bool:
        return self.free.cpus <= 0 and not self.free.elastic

    def ever_fits(self, asked: Resources) -> bool:
        return not self.total.shortages(asked)

    def take(self, key: AttemptKey, asked: Resources, prefer: Iterable[str] = ()) -> Grant | None:
        """Slots for this attempt, or None if they are not free. `prefer` names GPUs to choose if possible."""
        if self.free.shortages(asked):
            return None
        wanted = set(prefer)
        suitable = sorted(self.free.suitable(asked), key=lambda gpu: gpu.uuid not in wanted)
        grant = Grant(resources=asked, gpus=tuple(gpu.uuid for gpu in suitable[: asked.gpus]))
        self._hold(key, grant)
        return grant

    def occupy(self, key: AttemptKey, asked: Resources, gpus: Iterable[str]) -> Grant:
        """Record what a resumed attempt holds, even if the site has become smaller since."""
        grant = Grant(resources=asked, gpus=tuple(gpus))
        self._hold(key, grant)
        return grant

    def release(self, key: AttemptKey) -> None:
        if self._held.pop(key, None) is not None:
            self.free = self._recount()

    def to_announce(self, waiting: Iterable[Resources], travelling: Iterable[Resources] = ()) -> Capacity:
        """What the yard may fill: free slots minus those for attempts that wait here already, in their order.

        While one of them does not fit, nothing is announced: small runs would overtake it forever. Those with long
        transfers reserve no slots, as long as all of them would fit at once: more are not claimed.
        """
        free = self.free
        for asked in (*waiting, *self._beyond(travelling)):
            if free.shortages(asked):
                return Capacity(cpus=0, memory=0)
            free = free.minus(asked)
        return dataclasses.replace(free, cpus=max(0, free.cpus), memory=max(0, free.memory))

    def _beyond(self, travelling: Iterable[Resources]) -> list[Resources]:
        """Those that would not fit into the whole site beside those before them."""
        room, beyond = self.total, []
        for asked in travelling:
            if room.shortages(asked):
                beyond.append(asked)
            else:
                room = room.minus(asked)
        return beyond

    def _hold(self, key: AttemptKey, grant: Grant) -> None:
        if key in self._held:
            raise AssertionError(f"attempt {key} holds slots already")
        self._held[key] = grant
        self.free = self.free.minus(grant.resources, grant.gpus)

    def _recount(self) -> Capacity:
        free = self.total
        for grant in self._held.values():
            free = free.minus(grant.resources, grant.gpus)
        return free
