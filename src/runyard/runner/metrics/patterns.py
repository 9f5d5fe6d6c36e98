"""Metrics that a run only prints, found by the regular expressions of its spec in the lines of its log.

An expression may take for ever on the wrong line. The clock that ends it is a signal, which only the main thread gets;
so this is never done in another one.
"""

import contextlib
import re
import signal
import time
from typing import Any, Dict, Iterator, List, Optional, Pattern

from . import sink, tail
from .points import STEPS, MetricPoint, Number, as_step, from_text

_CHUNK = 1 << 18
_LONGEST_LINE = 4096
_CPU_S = 1.0  # for one expression and one chunk; what is sound takes milliseconds
_LINES = re.compile(rb"[\r\n]+")  # a progress bar returns to its beginning


class TooSlow(Exception):
    """The expression took too long."""


class Patterns:
    def __init__(self, texts: List[str], log: str = "log") -> None:
        self._log = log
        self._file = tail.Tail(log.encode())
        self._sink = sink.Sink()
        self._patterns = [pattern for pattern in map(self._compiled, texts) if pattern is not None]

    def read(self, is_last: bool = False) -> bool:
        """True when there is more to read at once. Raises OSError when values cannot be written; they are kept."""
        self._sink.flush()
        if not self._patterns:
            return False
        data = self._file.read(_CHUNK)
        is_full = len(data) == _CHUNK
        end = len(data) if is_last and not is_full else max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        end = end or (len(data) if is_full else 0)  # a line without an end
        self._file.advance(end)
        self._take([line[:_LONGEST_LINE].decode("utf-8", "replace") for line in _LINES.split(data[:end])])
        return is_full

    def finish(self, deadline: float) -> None:
        while self.read(is_last=True) and time.monotonic() < deadline:
            pass
        self._sink.close()

    def _take(self, lines: List[str]) -> None:
        """The values that several expressions find in one line belong together."""
        found: Dict[int, Dict[str, str]] = {}
        for pattern in list(self._patterns):
            try:
                with _limited():
                    for number, line in enumerate(lines):
                        for match in pattern.finditer(line):
                            found.setdefault(number, {}).update(_named(match))
            except TooSlow:
                self._patterns.remove(pattern)
                self._complain("takes too long and is not used any more", pattern.pattern)
        for number in sorted(found):
            point = _point(found[number])
            if point is not None:
                self._sink.add(point, source="stdout")
        self._sink.flush()

    def _compiled(self, text: str) -> Optional[Pattern[str]]:
        """This Python may be older than the one that checked it."""
        try:
            return re.compile(text)
        except (re.error, OverflowError, RecursionError) as error:
            self._complain("cannot be used by the Python of this node: %s" % error, text)
            return None

    def _complain(self, trouble: str, text: str) -> None:
        with open(self._log, "ab", buffering=0) as file:
            file.write(("runyard: the metric pattern %r %s\n" % (text, trouble)).encode("utf-8", "replace"))


def _named(match: Any) -> Dict[str, str]:
    groups = {name: text for name, text in match.groupdict().items() if text is not None}
    name, value = groups.pop("name", None), groups.pop("value", None)
    if name is not None and value is not None:
        groups[name] = value
    return groups


def _point(groups: Dict[str, str]) -> Optional[MetricPoint]:
    found: Dict[str, Number] = {}
    for name, text in groups.items():
        value = from_text(text)
        if value is not None:
            found[name] = value
    step = next((found.pop(name) for name in STEPS if name in found), None)
    return MetricPoint(found, as_step(step)) if found else None


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """By the time that this process computes: one that has to wait for its turn is not slow."""

    def ring(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, _CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
