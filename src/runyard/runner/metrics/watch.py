"""When metrics are read: periodically while the run is running, and once after its end.

A user's folder may be on a file server that hangs, and the runner must never: it may have to end the run. So files are
read in a thread, which is there only in runs that live long enough.
"""

import os
import time
from typing import TYPE_CHECKING, List, Optional

from .. import process, spec
from . import folder

if TYPE_CHECKING:
    import threading

    from . import patterns, reader, sink

PAUSE_S = 1.0

_AT_ONCE_S = 0.1
_SHARE = 4  # seconds of rest for each one of work


class MetricsCollector:
    def __init__(self, wanted: spec.Spec) -> None:
        """Before the run begins, because of what is in its folder already."""
        named = wanted.env.get(b"OUTPUT_DIR")
        self._folder = folder.MetricsFolder(os.path.join(wanted.cwd, named)) if named else None
        self._texts = wanted.metric_patterns
        self._patterns: "Optional[patterns.Patterns]" = None
        self._reader: "Optional[reader.Reader]" = None
        self._sink: "Optional[sink.Sink]" = None
        self._thread: "Optional[threading.Thread]" = None
        self._over: "Optional[threading.Event]" = None
        self._trouble: Optional[OSError] = None
        self._is_whole = False
        self._deadline = 0.0

    def look(self) -> float:
        """Called again and again; returns after how many seconds. Raises OSError when the disk is full."""
        if self._thread is None and self._folder is not None:
            self._begin(self._folder)
        if not self._texts:
            return PAUSE_S
        return 0.0 if self._of_log().read() else PAUSE_S

    def finish(self, is_whole: bool, patience_s: float) -> None:
        """All that is left, when the run is over and its log complete; at most for that long. `is_whole`: nothing ended
        it in the middle of a line. Raises OSError."""
        self._is_whole, self._deadline = is_whole, time.monotonic() + patience_s
        if self._thread is not None and self._over is not None:
            self._over.set()
            self._thread.join(patience_s + PAUSE_S)
            if self._trouble is not None:
                raise self._trouble
        elif self._folder is not None:
            self._finish_files(self._folder)
        if self._sink is not None:
            self._sink.close()
        if self._texts:
            self._of_log().finish(self._deadline)

    def _begin(self, place: folder.MetricsFolder) -> None:
        import threading  # here and below: a short run has no use for it

        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, args=(place, self._over), daemon=True)
        self._thread.start()

    def _follow(self, place: folder.MetricsFolder, over: "threading.Event") -> None:
        pause = 0.0
        try:
            while not over.wait(pause):
                begun = time.monotonic()
                more = self._take_files(place, begun + _AT_ONCE_S)
                pause = max(0.0 if more else PAUSE_S, _SHARE * (time.monotonic() - begun))
            self._finish_files(place)
        except OSError as error:
            self._trouble = error
        except Exception:  # it is not worth a run
            process.print_traceback()

    def _take_files(self, place: folder.MetricsFolder, deadline: float) -> bool:
        found = place.written()
        try:
            return self._of_files(place).take(found, deadline) if found else False
        except OSError:  # the disk is full: it is tried again
            return False

    def _finish_files(self, place: folder.MetricsFolder) -> None:
        found: List[folder.FoundFile] = place.written()
        if found:
            self._of_files(place).finish(found, self._deadline, self._is_whole)

    def _of_files(self, place: folder.MetricsFolder) -> "reader.Reader":
        if self._reader is None:
            from . import reader, sink

            self._sink = sink.Sink()
            self._reader = reader.Reader(place, self._sink)
        return self._reader

    def _of_log(self) -> "patterns.Patterns":
        if self._patterns is None:
            from . import patterns

            self._patterns = patterns.Patterns(self._texts)
        return self._patterns
