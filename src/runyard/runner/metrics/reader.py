"""From files to lines of metrics.jsonl: a bounded piece of work at a time."""

import os
import time
from typing import Dict, List, Optional, Union

from .. import process
from . import arrays, events, folder, lines, naming, sink, table, tail
from .points import Points

_LONGEST_HEADER = 1 << 20
_FREE_TABLES = (b"metrics.csv", b"progress.csv", b"history.csv")  # metrics also without a step

Source = Union[events.Events, table.TableReader, lines.JsonLines]


class Reader:
    def __init__(self, place: folder.MetricsFolder, target: sink.Sink) -> None:
        self._folder = place
        self._sink = target
        self._naming = naming.Naming()
        self._sources: Dict[bytes, Optional[Source]] = {}  # None: it is left alone
        self._prefixes: Dict[bytes, str] = {}

    def take(self, found: List[folder.FoundFile], deadline: float) -> bool:
        """Read what is new in these files. True if the time was over before their ends. Raises OSError when values
        cannot be written; they are kept."""
        self._sink.flush()
        more = [self._take_file(file, deadline, False) for file in found if not self._folder.is_done(file)]
        return any(more)

    def finish(self, found: List[folder.FoundFile], deadline: float, is_whole: bool) -> None:
        """Read the rest, after the last write. `is_whole`: no writer was interrupted in the middle of a line."""
        self._sink.flush()
        for file in found:
            if file.kind == folder.ARRAYS:
                self._tell(file, arrays.read(self._path(file), file.changed / 1e9))
            else:
                self._take_file(file, deadline, is_whole or file.kind != folder.TABLE)

    def _take_file(self, file: folder.FoundFile, deadline: float, is_last: bool) -> bool:
        source = self._source(file)
        while source is not None and time.monotonic() < deadline:
            try:
                points = source.read(is_last)
            except OSError:  # it was deleted, or cannot be read; the next pass shows it
                return False
            except Exception:  # whatever is in a user's file, the run must not suffer from it
                process.print_traceback()
                source = self._sources[file.path] = None
                return False
            self._tell(file, points)
            if not source.more:
                self._folder.done(file)
                return False
        return source is not None

    def _tell(self, file: folder.FoundFile, points: Points) -> None:
        if not points:
            return
        prefix = self._prefixes.get(file.path)
        if prefix is None:
            prefix = self._prefixes[file.path] = self._naming.prefix(file.path, file.kind)
        source = file.path.decode("utf-8", "replace")
        for point in points:
            self._sink.add(point, prefix, source)
        self._sink.flush()

    def _source(self, file: folder.FoundFile) -> Optional[Source]:
        if file.kind == folder.ARRAYS:
            return None
        if file.path not in self._sources:
            self._sources[file.path] = self._opened(file)
        return self._sources[file.path]

    def _opened(self, file: folder.FoundFile) -> Source:
        position, before = self._folder.beginning(file)
        followed = tail.Tail(self._path(file), position, before)
        if file.kind == folder.EVENTS:
            return events.Events(followed)
        if file.kind == folder.LINES:
            return lines.JsonLines(followed)
        is_free = os.path.basename(file.path).lower() in _FREE_TABLES
        return table.TableReader(followed, not is_free, self._first_line(file) if position else b"")

    def _first_line(self, file: folder.FoundFile) -> bytes:
        try:
            return tail.Tail(self._path(file)).read(_LONGEST_HEADER).partition(b"\n")[0]
        except OSError:
            return b""

    def _path(self, file: folder.FoundFile) -> bytes:
        return os.path.join(self._folder.path, file.path)
