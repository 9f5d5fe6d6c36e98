"""Numbers that a run reports: one line of JSON for each call, appended by one write.

A line costs some microseconds and is in the kernel when `log` returns: nothing is lost when the process is killed,
and lines of several processes do not mix. A failure here is reported once on standard error; training continues.
"""

import json
import os
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Set

LONGEST_NAME = 250  # characters, as the yard keeps them
LONGEST_TEXT = 1000  # characters of a text in a summary
_MOST_NAMES = 10000  # that are remembered in writing
_MOST_WORDS = 20  # complaints of one process
_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}  # as JSON's readers know them

_names: Dict[str, str] = {}  # as JSON
_told: Set[str] = set()
_file: List[Optional[int]] = [None, None, None]  # process number, descriptor, whether the last line was cut


def log(step: Any = None, **metrics: Any) -> None:
    """Report numbers, at a step. Names that are no Python identifiers: `log(step=3, **{"val/acc": 0.9})`.

    Anything that `float()` accepts is a number: also those of numpy and torch, NaN and the infinities.
    """
    descriptor = _opened()
    if descriptor is None:
        return
    values = _members(metrics, _number)
    if values:
        place = "" if step is None else '"step":%s,' % (_written("step", step, _step) or "null")
        _append(descriptor, '{"t":%.3f,%s"m":{%s}}\n' % (time.time(), place, values))


def summary(**values: Any) -> None:
    """Report final results: numbers, texts, true or false. Later values of a name replace earlier ones."""
    descriptor = _opened()
    if descriptor is None:
        return
    members = _members(values, _fact)
    if members:
        _append(descriptor, '{"t":%.3f,"summary":{%s}}\n' % (time.time(), members))


def _members(values: Dict[str, Any], write: Callable[[Any], str]) -> str:
    found = []
    for name, value in values.items():
        text = _written(name, value, write)
        if text is not None:
            found.append((_names.get(name) or _learn(name)) + text)
    return ",".join(found)


def _written(name: str, value: Any, write: Callable[[Any], str]) -> Optional[str]:
    """A value as JSON; None if that is not possible. Its conversion is foreign code, which may raise anything."""
    try:
        return write(value)
    except Exception as error:
        what = "%s, which cannot be reported" % type(value).__name__
        _tell(name, "%s is a %s: %s" % (_shown(name), what, error))
        return None


def _number(value: Any) -> str:
    if isinstance(value, (str, bytes)):
        raise TypeError("it is no number")
    text = repr(float(value))
    return _NOT_FINITE.get(text, text)


def _step(value: Any) -> str:
    """Integers of any type as integers, other numbers as floats."""
    try:
        return str(int(value.__index__()))
    except (AttributeError, TypeError):  # torch raises the second for what is not whole
        return _number(value)


def _fact(value: Any) -> str:
    if value is None or isinstance(value, (bool, str)):
        return json.dumps(value[:LONGEST_TEXT] if isinstance(value, str) else value)
    return _number(value)


def _learn(name: str) -> str:
    """The name as JSON with its colon, remembered: most runs report the same few all the time."""
    if len(name) > LONGEST_NAME:
        _tell(name, "%s is cut to %d characters" % (_shown(name), LONGEST_NAME))
    if len(_names) >= _MOST_NAMES:
        _names.clear()
    _names[name] = known = json.dumps(name[:LONGEST_NAME]) + ":"
    return known


def _opened() -> Optional[int]:
    """A descriptor of this process's own: a child that closed its parent's may have another file under that number."""
    if _file[0] != os.getpid():
        _file[:] = [os.getpid(), _open(), 0]
    return _file[1]


def _open() -> Optional[int]:
    path = os.environ.get("RUNYARD_METRICS")
    if not path:
        return None
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError as error:
        _tell(path, "metrics cannot be reported: %s" % error)
        return None


def _append(descriptor: int, line: str) -> None:
    """One write. A line that a full disk has cut is ended by the next one, so that only it is lost."""
    data = ("\n" + line if _file[2] else line).encode("ascii")
    try:
        _file[2] = os.write(descriptor, data) < len(data)
    except OSError as error:
        _tell(str(descriptor), "metrics cannot be reported: %s" % error)


def _tell(key: str, sentence: str) -> None:
    if key in _told or len(_told) >= _MOST_WORDS:
        return
    _told.add(key)
    try:
        sys.stderr.write("runyard: %s\n" % sentence)
    except (OSError, ValueError, AttributeError):  # it is closed, or there is none
        pass


def _shown(name: str) -> str:
    return "metric %s" % json.dumps(name if len(name) <= 80 else name[:80] + "…")
