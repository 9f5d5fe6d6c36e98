"""Facts from git about a folder: which files belong to it, and their commit, branch and remote."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from runyard import errors

# Variables that a hook or an alias sets for its own repository, which need not be the one of the folder.
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
_UNREADABLE = re.compile(r"could not open directory '(.*?)/?':")
WITHOUT = "--no-code submits without code"


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """The commit, branch and remote of a folder's files."""

    head: str | None  # None before the first commit
    branch: str | None  # None: detached
    remote: str | None  # without credentials
    dirty: bool
    diff: bytes  # of tracked files, for people: what is in the files is in the snapshot


def list_files(root: Path, paths: Sequence[str]) -> list[str]:
    """Tracked files and new ones, except those that are ignored, relative to the root; also those of submodules.

    A tracked file may be missing.
    """
    said, complaints = _run(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *paths)
    if unreadable := _UNREADABLE.search(complaints):
        raise errors.InvalidInput(
            f"the folder {unreadable[1]} cannot be read", "change its permissions, or add it to .gitignore"
        )
    return [path for name in dict.fromkeys(_names(said)) for path in _with_nested(root, name)]


def _with_nested(root: Path, name: str) -> Iterator[str]:
    """A submodule, or another checkout inside of this one, is listed only as a folder."""
    place = f"{root}/{name}"
    if not (name.endswith("/") or (os.path.isdir(place) and not os.path.islink(place))):
        yield name
    elif os.path.lexists(f"{place}/.git"):
        inside = name.rstrip("/")
        yield from (f"{inside}/{path}" for path in list_files(root / inside, ["."]))


def describe(root: Path, paths: Sequence[str]) -> Origin:
    asked = [
        _start(root, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal", "--", *paths),
        _start(root, "config", "-z", "--get-regexp", r"^(remote\..*\.url|branch\..*\.remote)$"),
    ]
    status, _ = _finish(asked[0], root)
    settings = _finish(asked[1], root, fine=(0, 1))[0]  # 1: nothing of that name
    facts, dirty = _read_status(_names(status))
    head, branch = facts.get("branch.oid", "(initial)"), facts.get("branch.head", "(detached)")
    diff = b"" if head == "(initial)" or not dirty else _diff(root, paths)
    known_branch = None if branch == "(detached)" else branch
    return Origin(
        head=None if head == "(initial)" else head, branch=known_branch, dirty=dirty, diff=diff,
        remote=_remote(_read_settings(settings), known_branch),
    )  # fmt: skip


def _diff(root: Path, paths: Sequence[str]) -> bytes:
    options = ("--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short")
    return _run(root, "diff", "HEAD", *options, "--", *paths)[0]


def _read_status(lines: Sequence[str]) -> tuple[dict[str, str], bool]:
    facts = dict(line[2:].partition(" ")[::2] for line in lines if line.startswith("# "))
    return facts, any(line and not line.startswith("# ") for line in lines)


def _read_settings(said: bytes) -> dict[str, str]:
    """The last of several values wins, as for git itself."""
    return dict(entry.partition("\n")[::2] for entry in _names(said))


def _remote(settings: Mapping[str, str], branch: str | None) -> str | None:
    """The remote that the branch tracks, else origin, else any."""
    names = [settings.get(f"branch.{branch}.remote", ""), "origin"]
    urls = [settings.get(f"remote.{name}.url") for name in names]
    others = [url for key, url in settings.items() if key.startswith("remote.")]
    found = next((url for url in (*urls, *others) if url), None)
    return None if found is None else without_credentials(found)


def without_credentials(url: str) -> str:
    """Tokens are written as user or password, and sometimes into the query. The user of an SSH address is no secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.rpartition("@")[2]
    if not parts.scheme or not parts.netloc:  # a path, or git@host:path
        return url
    user, at, place = parts.netloc.rpartition("@")
    if parts.scheme in ("ssh", "git+ssh"):
        place = user.partition(":")[0] + at + place
    return urlunsplit((parts.scheme, place, parts.path, "", ""))


def _names(said: bytes) -> list[str]:
    return [os.fsdecode(name) for name in said.split(b"\0") if name]


def _run(root: Path, *words: str) -> tuple[bytes, str]:
    return _finish(_start(root, *words), root)


def _start(root: Path, *words: str) -> subprocess.Popen[bytes]:
    environ = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    command = ["git", "--literal-pathspecs", "--no-pager", "-c", "core.quotepath=off", *words]
    own = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        return subprocess.Popen(
            command, cwd=root, env={**environ, **own}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip
    except FileNotFoundError:
        raise errors.InvalidInput(
            f"{root} is a git checkout, and without the program git its ignored files are unknown",
            f"install git; {WITHOUT}",
        ) from None


def _finish(process: subprocess.Popen[bytes], root: Path, fine: Sequence[int] = (0,)) -> tuple[bytes, str]:
    said, complaint = process.communicate()
    complaints = complaint.decode("utf-8", "replace")
    if process.returncode not in fine:
        lines = complaints.strip().splitlines() or [f"it ended with {process.returncode}"]
        # git's own advice for a checkout of another user is its last line.
        advice = lines[-1].strip() if "safe.directory" in complaints else WITHOUT
        raise errors.InvalidInput(f"git cannot read {root}: {lines[0].removeprefix('fatal: ')}", advice)
    return said, complaints
