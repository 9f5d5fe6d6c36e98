"""Maximum size of the cache of a site, in bytes."""

from __future__ import annotations

from runyard.model import units

USUAL = 20 << 30


def parse(text: str) -> int:
    """`50G`, `0` for no more than current runs need, or an empty text for the default."""
    if not text:
        return USUAL
    return 0 if text == "0" else units.parse_size(text, "cache_limit")
