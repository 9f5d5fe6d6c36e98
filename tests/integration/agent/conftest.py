"""Site directories with real runners, and no zygote left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.runner import link, records, sweep, tree


@pytest.fixture
def site() -> Iterator[Path]:
    """A site's directory. The zygote that a test started there ends with it."""
    with tempfile.TemporaryDirectory(prefix="ry-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)
        dismiss_zygote(Path(directory))
        for attempt in Path(directory).rglob("spec.json"):
            end_runner(attempt.parent)


def end_runner(attempt: Path) -> None:
    """What a failed test left running."""
    runner = records.read(f"{attempt}/started/runner.json")
    if runner and tree.is_alive(runner["pid"], runner["start_time"]):
        os.kill(runner["pid"], signal.SIGKILL)
        sweep.sweep(str(attempt))


def dismiss_zygote(directory: Path) -> None:
    with contextlib.suppress(OSError):
        connected = link.connect(directory)
        connected.quit()
        connected.close()
