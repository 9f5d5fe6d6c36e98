"""Byte ranges of a file: the Range header of RFC 9110."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.responses import Response

from runyard import errors
from runyard.server.answers import error_answer

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """Bytes from `start` up to, not including, `stop`."""

    start: int
    stop: int
    size: int  # of the whole file
    partial: bool = False

    @property
    def status(self) -> int:
        return 206 if self.partial else 200

    @property
    def headers(self) -> dict[str, str]:
        shown = {"Accept-Ranges": "bytes", "Content-Length": str(self.stop - self.start)}
        if self.partial:
            shown["Content-Range"] = f"bytes {self.start}-{self.stop - 1}/{self.size}"
        return shown


def parse_range(header: str | None, size: int) -> Span | None:
    """The range of the header; None if the file has no such range. Several ranges at once give the whole file."""
    match = _RANGE.fullmatch(header.strip()) if header else None
    if match is None or match[1] == match[2] == "":
        return Span(start=0, stop=size, size=size)
    if match[1] == "":
        start, stop = max(0, size - int(match[2])), size
    else:
        start, stop = int(match[1]), min(size, int(match[2] or size) + 1)
    return Span(start=start, stop=stop, size=size, partial=True) if start < stop else None


def no_such_part(size: int) -> Response:
    error = errors.InvalidInput("there is no such part of the file", f"it has {size} bytes so far")
    return error_answer(error, 416, {"Content-Range": f"bytes */{size}"})
