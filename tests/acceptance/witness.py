"""What runs leave behind for a test to judge by, independent of what runyard says about them."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path


class Witness:
    """A file that runs append a line to: `start 7`, `end 7`."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "witness"
        self.path.touch()

    def command(self, body: str) -> list[str]:
        """A shell command that signs in, does `body`, and signs out."""
        sign = f'echo "%s $RUNYARD_RUN_ID" >> {self.path}'
        return ["/bin/sh", "-c", f"{sign % 'start'}; {body}; {sign % 'end'}"]

    def count(self, word: str) -> Counter[int]:
        lines = [line.split() for line in self.path.read_text().splitlines()]
        return Counter(int(line[1]) for line in lines if line[0] == word)


def until(condition: Callable[[], object], *, timeout: float = 120, what: str = "the condition") -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {timeout} s")
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def with_argument(text: str) -> list[int]:
    """Processes that carry a text in their arguments."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            said = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if text.encode() in said and int(name) != os.getpid() and alive(int(name)):
            found.append(int(name))
    return found
