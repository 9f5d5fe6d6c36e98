"""How long to wait after a failed try."""

from __future__ import annotations

FIRST_S = 2.0
_MOST_DOUBLED = 20  # times: more than any longest pause, and no number that grows for ever


def after(tries: int, longest_s: float) -> float:
    """Seconds until the next try: doubles with each failure, up to the maximum."""
    return min(FIRST_S * 2.0 ** min(tries, _MOST_DOUBLED), longest_s)
