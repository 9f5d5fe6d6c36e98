"""The run of one repetition of one configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runyard.model.spec import RunSpec
from runyard.model.sweep.document import SweepSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Which one it is."""

    sweep: int
    trial: int  # counted from 1
    rep: int  # counted from 1
    index: int  # of all runs of the sweep, counted from 1
    seed: int


def run_spec(sweep: SweepSpec, place: Place, params: dict[str, Any]) -> RunSpec:
    """`params`: all of them, with those that do not vary."""
    return sweep.run.evolve(
        name=f"{sweep.name or f'S{place.sweep}'}.{place.index}",
        params=params,
        seed=place.seed,
        index=place.index,
    )
