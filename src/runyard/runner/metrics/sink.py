"""Lines of metrics.jsonl. The job may write there as well: each write is of whole lines, to the end of the file."""

import os
import time
from typing import Any, Dict, List, Optional

from .. import json_files
from . import folder
from .points import MetricPoint, Number

_MOST_NAMES = 20000  # twice what a yard keeps of a run, so that it can report how many there are
_LONGEST_NAME = 250  # as a yard keeps it
_TOGETHER = 500  # values of one line


class Sink:
    def __init__(self, path: str = folder.OWN_FILE) -> None:
        self._path = path
        self._file: Optional[int] = None
        self._names: Dict[str, str] = {}  # as they came, and as they are written
        self._open: Optional[Dict[str, Any]] = None  # the line that may get more values
        self._waiting: List[bytes] = []
        self.is_closed = False

    def add(self, point: MetricPoint, prefix: str = "", source: str = "") -> None:
        named = self._named(point.values, prefix)
        if point.is_summary or len(named) > _TOGETHER:
            for begin in range(0, len(named), _TOGETHER):
                self._begin(point, dict(list(named.items())[begin : begin + _TOGETHER]), source)
        elif named and not self._joins(point, named, source):
            self._begin(point, named, source)

    def flush(self) -> None:
        """Writes what is there. Raises OSError, and then has what was not written."""
        self._end_line()
        data, self._waiting = b"".join(self._waiting), []
        try:
            while data and not self.is_closed:
                data = data[os.write(self._descriptor(), data) :]
        finally:
            self._waiting = [data] if data else []

    def close(self) -> None:
        """Nothing is written from now on, not even by a thread that wakes up late."""
        self.is_closed = True
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _joins(self, point: MetricPoint, named: Dict[str, Number], source: str) -> bool:
        """Writers give one value at a time; those of one step share a line."""
        line = self._open
        if line is None or point.step is None or "m" not in line:
            return False
        if line["step"] != point.step or line["src"] != source or len(line["m"]) + len(named) > _TOGETHER:
            return False
        if not line["m"].keys().isdisjoint(named):
            return False
        line["m"].update(named)
        return True

    def _begin(self, point: MetricPoint, named: Dict[str, Number], source: str) -> None:
        self._end_line()
        at = round(point.at if point.at is not None else time.time(), 3)
        if point.is_summary:
            self._open = {"t": at, "summary": named, "src": source}
        else:
            self._open = {"t": at, "step": point.step, "m": named, "src": source}

    def _end_line(self) -> None:
        if self._open is not None:
            self._waiting.append(json_files.line(self._open))
            self._open = None

    def _named(self, values: Dict[str, Number], prefix: str) -> Dict[str, Number]:
        named = {}
        for name, value in values.items():
            known = self._known(prefix + name)
            if known is not None:
                named[known] = value
        return named

    def _known(self, name: str) -> Optional[str]:
        """None beyond the maximum of names: programs that put numbers into names must not fill our memory."""
        known = self._names.get(name)
        if known is None and len(self._names) < _MOST_NAMES:
            known = self._names[name] = name[:_LONGEST_NAME]
        return known or None

    def _descriptor(self) -> int:
        if self._file is None:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        return self._file
