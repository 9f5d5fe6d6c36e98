"""Sizes and durations in the notation of users."""

from __future__ import annotations

import math
import re

from runyard import errors

MAX_MEMORY = 1 << 60  # bytes
MAX_TIME = 10 * 366 * 86400  # seconds

_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)\s*([KMGTP]?)(i?B?)", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_PART = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)(d|h|min|m|s)", re.IGNORECASE)
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "min": 60.0, "s": 1.0}
_CLOCK = re.compile(r"(?:(\d{1,9})-)?(\d{1,9}):(\d{1,2})(?::(\d{1,2}))?")


def parse_size(value: object, field: str = "size") -> int:
    """Bytes from `4G`, `512M`, `1.5GiB` (powers of 1024) or a plain number of bytes."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _positive(value, field)
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise errors.InvalidInput(f"{field}: {value!r} is not a size", "write it like 4G or 512M")
    return _positive(int(float(match[1]) * 1024 ** _POWERS[match[2].upper()]), field)


def parse_duration(value: object, field: str = "time") -> int:
    """Seconds from `90s`, `2h`, `1d12h`, `1:30:00`, `2-00:00` or a plain number of seconds."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return _positive(int(value), field)
    text = value.strip() if isinstance(value, str) else ""
    if text.isascii() and text.isdigit() and len(text) < 19:
        return _positive(int(text), field)
    seconds = _clock_seconds(text) if ":" in text else _worded_seconds(text)
    if seconds is None:
        raise errors.InvalidInput(f"{field}: {value!r} is not a duration", "write it like 90s, 2h or 1:30:00")
    return _positive(seconds, field)


def _clock_seconds(text: str) -> int | None:
    """`HH:MM`, `HH:MM:SS`, `D-HH:MM` or `D-HH:MM:SS`."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _worded_seconds(text: str) -> int | None:
    parts = _PART.findall(text.replace(" ", ""))
    if not parts or "".join(number + unit for number, unit in parts) != text.replace(" ", ""):
        return None
    return round(sum(float(number) * _SECONDS[unit.lower()] for number, unit in parts))


def _positive(number: int, field: str) -> int:
    if number <= 0:
        raise errors.InvalidInput(f"{field}: must be more than zero")
    return number


def show_size(size: float | None) -> str:
    """`1.5 GB` in powers of 1024."""
    if size is None:
        return "-"
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if abs(size) < 1024 or unit == "TB":
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError("unreachable")


def show_duration(seconds: float | None) -> str:
    """`1.2s`, `45s`, `3m12s`, `2h05m`, `3d04h`."""
    if seconds is None:
        return "-"
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"
