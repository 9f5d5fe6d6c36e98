"""How files are named by what is in them: `sha256:<hex>`, the same digest that `sha256sum` prints."""

from __future__ import annotations

import re

from runyard import errors

# For so many seconds the yard's answer that it has a file is valid: refer to the file by then, or ask again. A blob of
# an expired checkpoint may be deleted when no client has asked for it for twice as long.
FOUND_S = 1800.0

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


def check_digest(text: object, where: str = "") -> str:
    """The digest itself; anything else is refused before it can become a path."""
    if not isinstance(text, str) or not _DIGEST.fullmatch(text):
        told = f"{where}: " if where else ""
        raise errors.InvalidInput(
            f"{told}{str(text)[:80]!r} is not a digest", "it looks like sha256: and 64 hexadecimal digits"
        )
    return text
