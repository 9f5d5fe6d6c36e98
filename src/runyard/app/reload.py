"""`runyard up --reload`: the yard as a child process that is restarted when its source or its config.toml changes."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from runyard.settings import Settings

LOOK_S = 0.5  # between two checks of the files
STOPS = (signal.SIGINT, signal.SIGTERM)

Stamps = dict[Path, tuple[int, int]]


def run(loaded: Settings, options: Sequence[str], notify: Callable[[str], None]) -> None:
    """Until SIGINT or SIGTERM. A yard that cannot start prints its error, and is started after the next change."""
    watched = (Path(__file__).parents[1], loaded.home / "config.toml")
    command = [sys.executable, "-P", "-m", "runyard", "up", *options]
    with _stop_signals_held_back():
        while True:
            seen = stamps(*watched)
            # Signals that are blocked here are not blocked in the child, and Ctrl-C of the terminal is sent to us only.
            child = subprocess.Popen(command, preexec_fn=_let_signals_in, process_group=0)
            changed = _change(watched, seen)
            _end(child)
            if not changed:
                return
            notify(f"{', '.join(changed)} changed; restarting the yard, and its runs continue")


def stamps(*places: Path) -> Stamps:
    """When each Python file below the directories, and each named file, was last changed."""
    found: Stamps = {}
    for place in places:
        for path in [*place.rglob("*.py")] if place.is_dir() else [place]:
            with contextlib.suppress(OSError):  # an editor may be replacing it
                status = path.stat()
                found[path] = (status.st_mtime_ns, status.st_size)
    return found


def changes(before: Stamps, after: Stamps) -> list[str]:
    paths = sorted({path for path, _ in before.items() ^ after.items()})
    return [path.name for path in paths]


def _change(watched: Sequence[Path], seen: Stamps) -> list[str]:
    """The names of changed files; none after a stop signal."""
    while signal.sigtimedwait(STOPS, LOOK_S) is None:
        if found := changes(seen, stamps(*watched)):
            return found
    return []


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.terminate()
    child.wait()


@contextlib.contextmanager
def _stop_signals_held_back() -> Iterator[None]:
    """Block them: they are waited for together with the files, so that none is lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _let_signals_in() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
