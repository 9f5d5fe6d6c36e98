"""Times and sizes as each scheduler writes them: the same text means different things to Slurm and to Grid Engine.

| text          | runyard      | Slurm          | Grid Engine  |
|---------------|--------------|----------------|--------------|
| `90`          | 90 seconds   | 90 minutes     | 90 seconds   |
| `1:30`        | 1 h 30 min   | 1 min 30 s     | 1 min 30 s   |
| `1:30:00`     | 1 h 30 min   | 1 h 30 min     | 1 h 30 min   |
| `1-12`        | –            | 1 d 12 h       | –            |
| `1-12:30[:00]`| 1 d 12.5 h   | 1 d 12.5 h     | –            |
| `2h`          | 2 hours      | 2 hours        | 2 hours      |
| `1024` (size) | 1024 bytes   | 1024 MB        | 1024 bytes   |
| `4G`          | 4 × 1024³    | 4 × 1024³      | 4 × 1024³    |
| `4g`          | 4 × 1024³    | 4 × 1024³      | 4 × 1000³    |
"""

from __future__ import annotations

import enum
import re

from runyard import errors
from runyard.model import units


class Writing(enum.StrEnum):
    """The notation of a text."""

    RUNYARD = "runyard"
    SLURM = "slurm"
    GRIDENGINE = "gridengine"


_UNLIMITED = {"unlimited", "infinite", "infinity", "none"}
_CLOCK = re.compile(r"(?:(\d+)-)?(\d*)(?::(\d+))?(?::(\d+))?")
_DECIMAL = {"k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_MEGABYTE = 1 << 20


def parse_time(text: str, writing: Writing, field: str = "time") -> int | None:
    """Seconds; None for no limit."""
    written = text.strip()
    if writing is Writing.RUNYARD:
        return units.parse_duration(written, field)
    if written.lower() in _UNLIMITED:
        return None
    seconds = _clock_seconds(written, writing)
    if seconds is None and ":" in written:
        raise errors.InvalidInput(f"{field}: {text!r} is not a time", "write it like 1:30:00 or 2h")
    if seconds is None:
        return units.parse_duration(written, field)
    if seconds == 0 and writing is Writing.SLURM:
        return None
    if seconds == 0:
        raise errors.InvalidInput(f"{field}: must be more than zero")
    return seconds


def _clock_seconds(text: str, writing: Writing) -> int | None:
    """None if it is not a clock time, such as `2h`. After days come hours; without days the last number is seconds."""
    match = _CLOCK.fullmatch(text)
    if match is None or not text.strip(":-") or (match[1] and writing is Writing.GRIDENGINE):
        return None
    numbers = [int(part or 0) for part in match.groups()[1:] if part is not None]
    if match[1] is not None:
        hours, minutes, seconds = [*numbers, 0, 0][:3]
        return int(match[1]) * 86400 + hours * 3600 + minutes * 60 + seconds
    if len(numbers) == 1:
        return numbers[0] * (60 if writing is Writing.SLURM else 1)
    hours, minutes, seconds = [0, *numbers][-3:]
    return hours * 3600 + minutes * 60 + seconds


def parse_size(text: str, writing: Writing, field: str = "memory") -> int | None:
    """Bytes; None for no limit (Slurm's `0`: all of the node's)."""
    written = text.strip()
    if writing is Writing.RUNYARD:
        return units.parse_size(written, field)
    if written.lower() in _UNLIMITED or (writing is Writing.SLURM and written == "0"):
        return None
    if writing is Writing.SLURM and written.isdecimal():
        return int(written) * _MEGABYTE
    if writing is Writing.GRIDENGINE and written[-1:] in _DECIMAL and written[:-1].isdecimal():
        return int(written[:-1]) * _DECIMAL[written[-1]]
    return units.parse_size(written, field)


def whole_minutes(seconds: float) -> int:
    """Slurm counts limits in minutes: rounded up, at least one."""
    return max(1, -(-int(seconds) // 60))


def whole_megabytes(size: int) -> int:
    return max(1, -(-size // _MEGABYTE))
