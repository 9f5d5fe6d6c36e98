"""Shell patterns for files: `*.pt`, `models/**`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from runyard import errors
from runyard.model import fields


def parse(value: object, where: str) -> tuple[str, ...]:
    """Patterns of files below the output directory."""
    found = fields.texts(value, where, 4096)
    for glob in found:
        if not glob:  # it would match no file
            raise errors.InvalidInput(f"{where}: a pattern is empty", "write one, such as '*.csv', or none")
        if glob.startswith("/") or ".." in glob.split("/"):
            raise errors.InvalidInput(f"{where}: {glob!r} leads out of the output directory", "use a relative pattern")
    return tuple(found)


def pattern(globs: Sequence[str]) -> str:
    """A regular expression for the paths that the globs match. A directory matches with everything below it."""
    return "|".join(f"(?:{_translate(glob)})(?:/.*)?" for glob in globs) or r"(?!)"


_WILD = re.compile(r"\*\*/|\*\*|\*|\?|\[(!?)(\]?[^]]*)\]|.", re.DOTALL)
_KNOWN = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _translate(glob: str) -> str:
    """As in a shell: `*` and `?` stay within a directory, `**` does not, `[a-z]` and `[!a-z]` are one character."""
    return _WILD.sub(_translate_token, glob.removeprefix("./").rstrip("/"))


def _translate_token(match: re.Match[str]) -> str:
    token, negated, inside = match.group(0, 1, 2)
    if inside is None:
        return _KNOWN.get(token) or re.escape(token)
    characters = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside)
    found = f"(?!/)[{'^' if negated else ''}{characters}]"
    try:
        re.compile(found)
    except re.error:  # such as [z-a]: no character at all
        return r"(?!)"
    return found
