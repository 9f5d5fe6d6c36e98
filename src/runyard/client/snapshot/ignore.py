"""`.runyardignore` in a folder: files that are not part of its snapshots, besides those that git ignores.

One glob on each line, as for outputs: `*.ckpt` and `old` at any depth, `/runs` and `data/raw` from the top. A line that
begins with `#` is a comment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from runyard import errors
from runyard.model import globs

NAME = ".runyardignore"
Ignored = Callable[[str], bool]


def load(root: Path) -> Ignored:
    try:
        text = (root / NAME).read_text(encoding="utf-8")
    except FileNotFoundError:
        return lambda path: False
    except (OSError, UnicodeDecodeError) as error:
        raise errors.InvalidInput(f"{root / NAME} cannot be read: {error}") from None
    pattern = re.compile(globs.pattern(list(_globs(text))), re.DOTALL)
    return lambda path: pattern.fullmatch(path) is not None


def _globs(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        glob = line.strip()
        if glob.startswith("!"):
            raise errors.InvalidInput(
                f"{NAME}, line {number}: a pattern cannot include files again", "list only files to leave out"
            )
        if glob and not glob.startswith("#"):
            inside = glob.rstrip("/")
            yield inside.lstrip("/") if "/" in inside else f"**/{inside}"
