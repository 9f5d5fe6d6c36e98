"""How much of a disk is kept free: with less free space, no new run is started."""

from __future__ import annotations

from dataclasses import dataclass

from runyard import errors
from runyard.model import units

USUAL_SHARE, USUAL_MOST = 0.05, 2 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskReserve:
    share: float  # of the whole disk
    most: int | None = None  # maximum in bytes
    least: int = 0

    def of(self, total: int) -> int:
        """Bytes of a disk of that size."""
        wanted = max(self.least, int(total * self.share))
        return wanted if self.most is None else min(wanted, self.most)


USUAL = DiskReserve(share=USUAL_SHARE, most=USUAL_MOST)


def parse(text: str) -> DiskReserve:
    """`5G`, `10%`, `0` for none, or an empty text for the default: 5 %, and 2 GB at most."""
    if not text:
        return USUAL
    if text == "0":
        return DiskReserve(share=0)
    if text.endswith("%"):
        return DiskReserve(share=_percent(text) / 100)
    return DiskReserve(share=0, least=units.parse_size(text, "disk_reserve"))


def _percent(text: str) -> float:
    try:
        number = float(text[:-1])
    except ValueError:
        number = -1.0
    if not 0 <= number <= 100:
        raise errors.InvalidInput(f"disk_reserve: {text!r} is not a share", "write it like 5%")
    return number
