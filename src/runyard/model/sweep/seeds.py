"""The seed of each run: it depends on what the run is, and not on when the sweep came to it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from runyard.model.sweep.space import identity

LARGEST = (1 << 31) - 1  # what every library takes


def seed_of(sweep_seed: int, params: Mapping[str, Any], rep: int, again: int = 0) -> int:
    """`again`: how many earlier trials have the same parameters."""
    text = f"{sweep_seed}:{rep}:{again}:{identity(params)}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") & LARGEST
