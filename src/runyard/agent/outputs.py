"""Bring back what a run left in its output directory."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runyard import errors
from runyard.agent.link import Link

MOST_FILES = 50_000
CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where to look. `since_ns` leaves out what was there before this attempt; None takes everything."""

    directory: str
    globs: Sequence[str]
    since_ns: int | None = None


@dataclass(kw_only=True, slots=True)
class Collected:
    files: list[dict[str, Any]] = field(default_factory=list)  # {path, size, digest, mode}
    notes: list[str] = field(default_factory=list)  # what was left out, for people


def is_empty(directory: str) -> bool:
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is None
    except OSError:
        return True


def collect(place: Place, link: Link) -> Collected:
    """Hash and hand over every file that a glob names. Raises what the link raises when the yard cannot be reached."""
    collected = Collected()
    paths = list(_wanted(place, collected.notes))
    if len(paths) > MOST_FILES:
        collected.notes.append(f"{len(paths) - MOST_FILES} outputs left out: at most {MOST_FILES} files come back")
        del paths[MOST_FILES:]
    sources = {}
    for path in paths:
        entry = _describe(place, path, collected.notes)
        if entry is not None:
            collected.files.append(entry)
            sources[entry["digest"]] = Path(place.directory, path)
    refused = _hand_over(link, sources, movable=place.since_ns is None)
    changed = [entry["path"] for entry in collected.files if entry["digest"] in refused]
    collected.notes += [f"output left out: {path} changed while it was read" for path in changed]
    collected.files = [entry for entry in collected.files if entry["digest"] not in refused]
    return collected


def _hand_over(link: Link, sources: dict[str, Path], *, movable: bool) -> set[str]:
    """Only what the yard does not have. Returns the digests that did not match any more when the bytes were sent."""
    refused = set()
    for digest in sorted(link.missing_blobs(sources)) if sources else ():
        try:
            link.put_blob(digest, sources[digest], movable)
        except (errors.InvalidInput, OSError):
            refused.add(digest)
    return refused


def _wanted(place: Place, notes: list[str]) -> Iterator[str]:
    matches = matcher(place.globs)
    unreadable = 0
    for path in _walk(place.directory, ""):
        if not matches(path) or _is_older(place, path):
            continue
        if _is_text(path):
            yield path
        else:
            unreadable += 1
    if unreadable:
        notes.append(f"{unreadable} outputs left out: their names are not UTF-8")


def _walk(root: str, below: str) -> Iterator[str]:
    """Regular files in a fixed order. Symbolic links are neither followed nor taken: they may lead out."""
    try:
        with os.scandir(os.path.join(root, below)) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found:
        path = f"{below}/{entry.name}" if below else entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(root, path)
        elif entry.is_file(follow_symlinks=False):
            yield path


def _is_older(place: Place, path: str) -> bool:
    if place.since_ns is None:
        return False
    try:
        return os.lstat(os.path.join(place.directory, path)).st_mtime_ns < place.since_ns
    except OSError:
        return True


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _describe(place: Place, path: str, notes: list[str]) -> dict[str, Any] | None:
    try:
        # Not blocking, because a pipe may have taken the file's place meanwhile.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(os.path.join(place.directory, path), flags), "rb", buffering=0) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return None
            digest, size = _hash(file.read)
    except OSError as error:
        notes.append(f"output left out: {path}: {(error.strerror or str(error)).lower()}")
        return None
    return {"path": path, "size": size, "digest": f"sha256:{digest}", "mode": stat.S_IMODE(found.st_mode)}


def _hash(read: Callable[[int], bytes | None]) -> tuple[str, int]:
    total, size = hashlib.sha256(), 0
    while chunk := read(CHUNK):
        total.update(chunk)
        size += len(chunk)
    return total.hexdigest(), size


def matcher(globs: Sequence[str]) -> Callable[[str], bool]:
    """Whether a path is named by one of the globs. One that names a directory takes everything below it."""
    pattern = re.compile("|".join(f"(?:{_translate(glob)})(?:/.*)?" for glob in globs) or r"(?!)", re.DOTALL)
    return lambda path: pattern.fullmatch(path) is not None


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
