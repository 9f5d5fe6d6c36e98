"""Untrusted relative paths below a directory: normalized, and never outside of it."""

from __future__ import annotations

import collections
import re
from collections.abc import Collection

from runyard import errors
from runyard.model import fields

LONGEST_PATH = 1024  # bytes
LONGEST_SEEN = 1 << 16  # characters, of a path that is too long: the error quotes its beginning
LONGEST_NAME = 255  # bytes, as in file systems
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_UNDECODABLE = re.compile(r"[\ud800-\udfff]")  # surrogate escapes of bytes that are not UTF-8


def relative(value: object, where: str) -> str:
    """A normalized relative POSIX path without control characters."""
    path = one_line(value, where)
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise errors.InvalidInput(f"{where}: {path!r} is not a plain relative path", "write it like src/train.py")
    if len(path) > LONGEST_NAME // 4 and any(len(part.encode()) > LONGEST_NAME for part in parts):
        raise errors.InvalidInput(f"{where}: a name in {path[:80]!r}… is longer than {LONGEST_NAME} bytes")
    return path


def link_target(value: object, path: str, where: str) -> str:
    """The target of the symbolic link at `path`: below the same root, whatever other links there are.

    The directories of a path are no links themselves, so '..' at the beginning of a target is safe; after a name, which
    may be another link, it could lead anywhere.
    """
    target = one_line(value, where)
    parts = target.split("/")
    up = 0
    while up < len(parts) and parts[up] == "..":
        up += 1
    if target.startswith("/") or up > path.count("/") or ".." in parts[up:]:
        raise errors.InvalidInput(
            f"{where}: the link {path!r} leads to {target!r}, which may be outside of its directory",
            "use a relative target below the same directory, with '..' only at its beginning",
        )
    return target


def one_line(value: object, where: str) -> str:
    text = fields.text(value, where, LONGEST_SEEN, raw=True)
    if _UNDECODABLE.search(text):
        raise errors.InvalidInput(f"{where}: {text!r} is not a name in UTF-8", "rename it")
    if _CONTROL.search(text):
        raise errors.InvalidInput(f"{where}: {text!r} has a line break or another control character in it", "rename it")
    if len(text.encode()) > LONGEST_PATH:
        raise errors.InvalidInput(
            f"{where}: {text[:80]!r}… is longer than {LONGEST_PATH} bytes", "use fewer or shorter directory names"
        )
    return text


def check_apart(paths: Collection[str], where: str) -> None:
    """No two equal, and none below another: all can be created."""
    taken = set(paths)
    if len(taken) < len(paths):
        [(twice, _)] = collections.Counter(paths).most_common(1)
        raise errors.InvalidInput(f"{where}: {twice!r} is named twice", "give each its own path")
    for above in {path[:end] for path in taken for end in _slashes(path)}:
        if above in taken:
            below = next(path for path in taken if path.startswith(f"{above}/"))
            raise errors.InvalidInput(f"{where}: {above!r} is already used, and {below!r} is below it")


def _slashes(path: str) -> list[int]:
    return [index for index, character in enumerate(path) if character == "/"]
