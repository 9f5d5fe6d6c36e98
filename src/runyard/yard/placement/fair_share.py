"""Which run is next: priority, then fair share between owners, then between projects, then age; and what fits. Pure."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from runyard.model.resources import Capacity, Resources

PATIENCE = 30.0  # seconds a run may be overtaken by smaller ones before slots are kept for it
GPU_WEIGHT = 8  # a GPU counts as this many cpus


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """A waiting run near the front of its lane."""

    id: int
    lane: str
    priority: int
    resources: Resources
    queued_at: float
    attempt: int


class Usage:
    """Current and past usage of lanes and their owners."""

    def __init__(self, now: Mapping[str, float], past: Mapping[str, float] | None = None) -> None:
        self._now, self._past = _amounts(now), _amounts(past or {})
        self._owner_now, self._owner_past = _by_owner(self._now), _by_owner(self._past)

    def rank(self, head: Head) -> tuple[float, ...]:
        """Sort key: smaller first."""
        owner = _owner(head.lane)
        owners = self._owner_now[owner], self._owner_past[owner]
        return (-head.priority, *owners, self._now[head.lane], self._past[head.lane], head.id)

    def add(self, head: Head) -> None:
        weight = head.resources.nodes * (head.resources.cpus + GPU_WEIGHT * head.resources.gpus)
        self._now[head.lane] += weight
        self._owner_now[_owner(head.lane)] += weight


def _owner(lane: str) -> str:
    return lane.partition("/")[0]


def _amounts(given: Mapping[str, float]) -> defaultdict[str, float]:
    return defaultdict(float, given)


def _by_owner(amounts: Mapping[str, float]) -> defaultdict[str, float]:
    total: defaultdict[str, float] = defaultdict(float)
    for lane, amount in amounts.items():
        total[_owner(lane)] += amount
    return total


def choose(
    heads: Iterable[Head],
    usage: Usage,
    free: Capacity,
    total: Capacity,
    *,
    now: float,
    ahead: int = 0,
    room: int | None = None,
) -> list[Head]:
    """The runs to assign, in order: those that fit the free slots, then `ahead` more that will fit later; at most
    `room` of them.

    Not those that wait for a GPU: GPUs are held for long, and other runs could not overtake them at that node."""
    lanes = _lanes(heads)
    chosen: list[Head] = []
    kept: _Kept | None = None
    while lanes and (room is None or len(chosen) < room):
        head = _pop_next(lanes, usage)
        if total.shortages(head.resources):
            continue  # another node of the site must take it
        short = free.shortages(head.resources)
        if not short and (kept is None or kept.lets_pass(head.resources, free)):
            free = free.minus(head.resources)
        elif ahead > 0 and kept is None and "gpus" not in short:
            ahead -= 1
        else:
            if short and kept is None and now - head.queued_at > PATIENCE:
                kept = _Kept(asked=head.resources, short=frozenset(short))
            continue
        usage.add(head)
        chosen.append(head)
    return chosen


def _lanes(heads: Iterable[Head]) -> dict[str, deque[Head]]:
    lanes: dict[str, deque[Head]] = {}
    for head in sorted(heads, key=lambda head: (-head.priority, head.id)):
        lanes.setdefault(head.lane, deque()).append(head)
    return lanes


def _pop_next(lanes: dict[str, deque[Head]], usage: Usage) -> Head:
    lane = min(lanes, key=lambda lane: usage.rank(lanes[lane][0])) if len(lanes) > 1 else next(iter(lanes))
    head = lanes[lane].popleft()
    if not lanes[lane]:
        del lanes[lane]
    return head


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kept:
    """Slots reserved for a run that waited long enough: others pass only if they take nothing that it needs."""

    asked: Resources
    short: frozenset[str]

    def lets_pass(self, other: Resources, free: Capacity) -> bool:
        if any(getattr(other, kind) for kind in self.short):
            return False
        return set(free.minus(other).shortages(self.asked)) <= self.short


def nearest(asked: Resources, places: Mapping[str, Capacity]) -> str:
    """One sentence on why no node fits, with the nearest node and what it could give."""
    name, place = min(places.items(), key=lambda item: len(item[1].shortages(asked)))
    short = place.shortages(asked)
    return f"{', '.join(short)}: the most that {name} can give is {place.describe()}"
