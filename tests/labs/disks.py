"""Disks that are soon full, for whoever may mount one: root."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def small_disk(place: Path, options: str) -> Iterator[Path]:
    """A file system of its own at `place`, such as `size=8m`; nothing is left of it afterwards."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
        place.rmdir()
