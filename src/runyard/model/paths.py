"""Relative paths that came from outside and are made below some folder: they mean one place, and never lead out."""

from __future__ import annotations

import collections
import re
from collections.abc import Collection

from runyard import errors
from runyard.model import fields

LONGEST_PATH = 1024  # bytes
LONGEST_SEEN = 1 << 16  # characters, of one that is too long: an error names where it begins
LONGEST_NAME = 255  # bytes, as file systems have it
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_UNDECODABLE = re.compile(r"[\ud800-\udfff]")  # how Python writes bytes that are no UTF-8


def relative(value: object, where: str) -> str:
    """A relative POSIX path in its only spelling, with no name that a terminal or a list of lines would choke on."""
    path = one_line(value, where)
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise errors.InvalidInput(f"{where}: {path!r} is not a plain relative path", "write it like src/train.py")
    if len(path) > LONGEST_NAME // 4 and any(len(part.encode()) > LONGEST_NAME for part in parts):
        raise errors.InvalidInput(f"{where}: a name in {path[:80]!r}… is longer than {LONGEST_NAME} bytes")
    return path


def link_target(value: object, path: str, where: str) -> str:
    """Where the symbolic link at `path` leads: to something below the same root, whatever other links there are.

    The folders that a path names are no links themselves, so '..' at the beginning of a target is what it seems to be;
    after a name, which may be another link's, it could lead anywhere.
    """
    target = one_line(value, where)
    parts = target.split("/")
    up = 0
    while up < len(parts) and parts[up] == "..":
        up += 1
    if target.startswith("/") or up > path.count("/") or ".." in parts[up:]:
        raise errors.InvalidInput(
            f"{where}: the link {path!r} leads to {target!r}, which may be outside of its folder",
            "use a relative target below the same folder, with '..' only at its beginning",
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
            f"{where}: {text[:80]!r}… is longer than {LONGEST_PATH} bytes", "use fewer or shorter folders"
        )
    return text


def check_apart(paths: Collection[str], where: str) -> None:
    """No two at one place, and none below another: all can be made."""
    taken = set(paths)
    if len(taken) < len(paths):
        [(twice, _)] = collections.Counter(paths).most_common(1)
        raise errors.InvalidInput(f"{where}: {twice!r} is named twice", "give each a place of its own")
    for above in {path[:end] for path in taken for end in _slashes(path)}:
        if above in taken:
            below = next(path for path in taken if path.startswith(f"{above}/"))
            raise errors.InvalidInput(f"{where}: {above!r} is taken, and {below!r} lies below it")


def _slashes(path: str) -> list[int]:
    return [index for index, character in enumerate(path) if character == "/"]
