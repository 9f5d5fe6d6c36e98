"""Snapshots of folders: of code, as git sees it, and of data."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from runyard import errors
from runyard.client.run_inputs import find_checkout
from runyard.client.snapshot import git, ignore, reading, walk
from runyard.client.snapshot.limits import Limit
from runyard.client.snapshot.stat_cache import StatCache
from runyard.model import staged
from runyard.model.tree import Tree

Advance = Callable[[int], object]  # called with the bytes that are done


class ProgressDisplay(Protocol):
    """Shows the user what is being done, and how many of the bytes are done."""

    def __call__(self, title: str, total: int) -> AbstractContextManager[Advance]: ...


def unseen(title: str, total: int) -> AbstractContextManager[Advance]:
    return nullcontext(lambda size: None)


@dataclass(frozen=True, kw_only=True, slots=True)
class SnapshotLimits:
    code: int = 200 << 20  # bytes
    code_files: int = 20_000
    data: int = 20 << 30
    data_files: int = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Camera:
    """What all snapshots of a call share. `cache`: a directory of digests seen before; None: without."""

    limits: SnapshotLimits = field(default_factory=SnapshotLimits)
    cache: Path | None = None
    progress: ProgressDisplay = unseen


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    root: Path
    tree: Tree
    git: staged.Git | None = None
    diff: bytes = b""
    before: bytes = b""  # the description of the folder when it was read last, which the yard may have

    def sources(self) -> dict[str, Path]:
        """Where the bytes of each digest were."""
        return {file.digest: self.root / file.path for file in self.tree.files}

    def texts(self) -> dict[str, bytes]:
        """Contents that are in no file: the tree itself, and the diff."""
        made = {self.tree.digest: self.tree.encode()}
        return {**made, self.git.diff: self.diff} if self.git and self.git.diff else made

    def code(self) -> staged.Code:
        return staged.Code(tree=self.tree.digest, files=len(self.tree.files), size=self.tree.size, git=self.git)


def take_code(root: Path, paths: Sequence[str], camera: Camera, *, without: Collection[str] = ()) -> Snapshot:
    """Of these paths below the root, except folders that are sent as data; raises InvalidInput."""
    place, limits = _folder(root), camera.limits
    checkout = find_checkout(place)
    wanted = [_inside(place, path) for path in paths]
    limit = Limit(
        what="the code", bytes=limits.code, files=limits.code_files,
        fix=f"name what is no code ({{folder}}) in {'.gitignore or ' if checkout else ''}{ignore.NAME}, send it with "
        "--data, or list what is code (--code src); code_limit and code_files in config.toml are the limits",
    )  # fmt: skip
    names = _left(_names(place, wanted, checkout is not None), without)
    return _take(place, names, limit, camera, lambda: git.describe(place, wanted) if checkout else None)


def take_data(folder: Path, camera: Camera) -> Snapshot:
    """All files in it, also those that git ignores."""
    place, limits = _folder(folder), camera.limits
    limit = Limit(
        what=f"the folder {folder}", bytes=limits.data, files=limits.data_files,
        fix="put it where the runs execute and name it with --data /absolute/path, "
        f"leave things out with {ignore.NAME}, or raise data_limit in config.toml",
    )  # fmt: skip
    return _take(place, walk.list_files(place, ".", ignore.load(place)), limit, camera, lambda: None)


def _take(
    root: Path, names: Iterator[str], limit: Limit, camera: Camera, describe: Callable[[], git.Origin | None]
) -> Snapshot:
    listed = list(names)
    limit.check_count(listed)
    found = reading.look(root, listed, limit.what)
    sizes = {path: status.st_size for path, status in found.files.items()}
    limit.check_size(sizes)
    cache = StatCache(camera.cache, root)
    with ThreadPoolExecutor(1) as aside:  # git has its own reading to do
        asked = aside.submit(describe)
        with camera.progress(f"reading {limit.what}", sum(sizes.values())) as advance:
            tree = Tree.build(reading.digests(found, cache, advance), found.links)
        origin = asked.result()
    cache.save()
    before = cache.last_tree()
    cache.keep_tree(tree.encode())
    return Snapshot(root=root, tree=tree, git=_git(origin), diff=origin.diff if origin else b"", before=before)


def _git(origin: git.Origin | None) -> staged.Git | None:
    if origin is None:
        return None
    diff = f"sha256:{hashlib.sha256(origin.diff).hexdigest()}" if origin.diff else None
    return staged.Git(head=origin.head, branch=origin.branch, remote=origin.remote, dirty=origin.dirty, diff=diff)


def _folder(path: Path) -> Path:
    """With links resolved, so that paths below it can be compared with it."""
    try:
        place = path.resolve(strict=True)
    except (OSError, RuntimeError):
        raise errors.InvalidInput(f"there is no folder {path}", "check the path, and where you are") from None
    if not place.is_dir():
        raise errors.InvalidInput(f"{path} is no folder", "name the folder that it is in")
    return place


def _inside(root: Path, path: str) -> str:
    """The path relative to the root."""
    place = os.path.normpath(root / Path(path).expanduser())
    real = os.path.join(os.path.realpath(os.path.dirname(place)), os.path.basename(place))
    relative = os.path.relpath(real, root)
    if relative == ".." or relative.startswith("../"):
        raise errors.InvalidInput(
            f"--code: {path} is outside of the project {root}", "change to the folder that has all of the code in it"
        )
    if not os.path.lexists(root / relative):
        raise errors.InvalidInput(f"--code: there is no {path} in {root}", "check the path")
    return relative


def _names(root: Path, wanted: Sequence[str], in_checkout: bool) -> Iterator[str]:
    ignored = ignore.load(root)
    listed = [name for name in git.list_files(root, wanted) if not ignored(name)] if in_checkout else []
    yield from listed
    for path in wanted:
        # What git ignores is part of the code when it is named, or when it is all there is.
        if not any(path == "." or name == path or name.startswith(f"{path}/") for name in listed):
            yield from walk.list_files(root, path, ignored)


def _left(names: Iterator[str], without: Collection[str]) -> Iterator[str]:
    folders = tuple(f"{folder}/" for folder in without)
    return (name for name in dict.fromkeys(names) if not name.startswith(folders) and name not in without)
