"""Disks that are soon full, for whoever may mount one: root."""

from __future__ import annotations

import contextlib
import ctypes
import os
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


def fill(filler: Path) -> None:
    """To the last byte that anybody gets."""
    with filler.open("ab", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))


@contextlib.contextmanager
def silent_disk(place: Path) -> Iterator[None]:
    """A file system over `place` whose server never answers, as one far away that hangs: whoever looks there waits."""
    server = os.open("/dev/fuse", os.O_RDWR)
    mount = ctypes.CDLL(None, use_errno=True).mount
    if mount(b"silent", os.fsencode(place), b"fuse", 0, b"fd=%d,rootmode=40000,user_id=0,group_id=0" % server):
        os.close(server)
        raise OSError(ctypes.get_errno(), "cannot mount", str(place))
    try:
        yield
    finally:
        os.close(server)
        subprocess.run(["umount", "-l", str(place)], check=True)
