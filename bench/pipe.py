"""A pipe by which a run says that it has come to a point."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path

GIVEN_UP_S = 60.0


class Pipe:
    """Its `command` writes a line, which is noticed at once."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        path.chmod(0o666)  # the run may be somebody else's
        self._file = os.open(path, os.O_RDWR)  # so that it never comes to an end
        self.command = f"echo > {path}"  # for sh

    def __enter__(self) -> Pipe:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._file)

    def wait(self) -> float:
        """When the next line was written."""
        if not select.select([self._file], [], [], GIVEN_UP_S)[0]:
            raise SystemExit(f"nothing started within {GIVEN_UP_S:g} s")
        now = time.monotonic()
        os.read(self._file, 1)
        return now
