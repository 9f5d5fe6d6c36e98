"""Jobs that could not start, and that their owner has deleted: Grid Engine keeps such a job in its queue until then.

In runyard such a run has ended and cannot be deleted. So the list of deleted jobs is a file of the user, beside the
token.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

FILE = "dismissed-jobs"


def read(home: Path) -> set[int]:
    with contextlib.suppress(OSError):
        return {int(line) for line in (home / FILE).read_text(encoding="ascii").split() if line.isdigit()}
    return set()


def add(home: Path, ids: Iterable[int]) -> None:
    with (home / FILE).open("a", encoding="ascii") as file:
        file.writelines(f"{number}\n" for number in ids)
