"""`runyard up --reload`: the yard as a child that is started anew whenever its source or its config.toml changes."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import runyard
from runyard.cli import output
from runyard.settings import Settings

LOOK_S = 0.5  # between two looks at the files
STOPS = (signal.SIGINT, signal.SIGTERM)

Stamps = dict[Path, tuple[int, int]]


def run(loaded: Settings, options: Sequence[str]) -> None:
    """Until SIGINT or SIGTERM. A yard that cannot start is told by its own words, and waits for the next change."""
    watched = (Path(runyard.__file__).parent, loaded.home / "config.toml")
    command = [sys.executable, "-P", "-m", "runyard", "up", *options]
    with _stop_signals_held_back():
        while True:
            seen = stamps(*watched)
            # What is held back here is not for the child, and our terminal's Ctrl-C comes through us alone.
            child = subprocess.Popen(command, preexec_fn=_let_signals_in, process_group=0)
            changed = _change(watched, seen)
            _end(child)
            if not changed:
                return
            output.remark(f"{', '.join(changed)} changed; starting the yard anew, and its runs go on")


def stamps(*places: Path) -> Stamps:
    """When each Python file below the directories, and each file named, was changed last."""
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
    """The names of what changed; none when somebody wants us to stop."""
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
    """They are waited for with the files, so that none comes between a look and the next."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _let_signals_in() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
