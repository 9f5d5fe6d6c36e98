"""How many bytes the cache of a site may have."""

from __future__ import annotations

from runyard.model import units

USUAL = 20 << 30


def parse(text: str) -> int:
    """`50G`, `0` for no more than what runs need at the moment, or nothing for the usual."""
    if not text:
        return USUAL
    return 0 if text == "0" else units.parse_size(text, "cache_limit")
