"""TensorBoard's event files of runs, copied to a folder of this machine while they grow."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from runyard import errors, locks
from runyard.client import fetch
from runyard.model import globs

if TYPE_CHECKING:
    from runyard.client.outputs import Output
    from runyard.client.run import Run
    from runyard.client.session import Session

EVENT_FILES = ("**/*tfevents*",)
_WANTED = re.compile(globs.pattern(EVENT_FILES), re.DOTALL)
_LOCK = ".lock"
SITE_S = 30.0  # how long to wait for a site


class EventFiles:
    """One folder per run below `root`, named after the run. See `opened`: only one process may write there."""

    def __init__(self, client: Session, root: Path) -> None:
        self._client, self.root = client, root
        self._brought: dict[Path, str] = {}  # the digest of what is there
        self._finished: set[tuple[int, int]] = set()  # runs and their attempts of which nothing more can come

    def sync(self, runs: Iterable[Run], *, wait: bool) -> int:
        """Fetch new data of these runs, whose states have just been read; returns the number of files.

        With `wait`, the sites are asked for the current files first. Without, it is what they have sent since the last
        call, and they are asked for the next one."""
        due = [run for run in runs if _attempt(run) not in self._finished]
        for run in due if wait else ():
            if not run.final:
                run.current_outputs(0)  # so that all sites are at it at once
        for run in due:
            self._sync(run, SITE_S if wait else 0)
        return len(self._brought)

    def keep_only(self, runs: Iterable[Run]) -> None:
        """Delete the folders of other runs, which TensorBoard would show as well."""
        kept = {folder_name(run) for run in runs}
        for folder in self.root.iterdir():
            if folder.is_dir() and folder.name not in kept:
                shutil.rmtree(folder)

    def _sync(self, run: Run, timeout: float) -> None:
        found = run.outputs() if run.final else run.current_outputs(timeout)[0]
        folder = self.root / folder_name(run)
        for output in found:
            if _WANTED.fullmatch(output.path):
                self._bring(output, folder)
        if run.final:
            self._finished.add(_attempt(run))

    def _bring(self, output: Output, folder: Path) -> None:
        path = folder / output.path
        if self._brought.get(path) != output.digest:
            fetch.extend(self._client, output, folder)
            self._brought[path] = output.digest


def _attempt(run: Run) -> tuple[int, int]:
    return run.id, run.data["attempt"]


@contextlib.contextmanager
def opened(client: Session, root: Path) -> Iterator[EventFiles]:
    """Raises Conflict where another process keeps this folder."""
    root.mkdir(parents=True, exist_ok=True)
    try:
        with locks.held(root / _LOCK, shared=False):
            yield EventFiles(client, root)
    except locks.Held as held:
        raise errors.Conflict(f"{held} keeps these runs in {root} already", "use the one that is open") from None


def folder_name(run: Run) -> str:
    """`42-name`; characters that a file system or TensorBoard may not accept become dashes."""
    name = re.sub(r"[^\w.+-]+", "-", run.data["name"]).strip("-.")[:80]
    return f"{run.id}-{name}" if name else str(run.id)
