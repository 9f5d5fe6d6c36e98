"""A project's folder on the shared drive: `<share>/<project>/runs/param_NNN/<job_name>/<series>.csv`."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import sys
import time
from collections.abc import Collection, Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

from runyard import errors
from runyard.bridges.ludwig import values

MOUNT = "LUDWIG_MNT"
DRIVES = ("ludwig_data", "research_data")  # what the drive was called, and earlier
MAC, NODES = "/Volumes", "/media"  # where it is mounted
RUNS = "runs"
CONFIGURATION = "param2val.yaml"
LOCK = ".runyard-submit.lock"
SAME_TIME_S = 2  # file servers keep times no more exactly
_PARAM = re.compile(r"param_(\d+)")


def find_share(given: Path | str | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    """The drive's root: as given, from LUDWIG_MNT, or at the usual mount point."""
    if given is not None:
        return Path(given).expanduser().absolute()
    point = environ.get(MOUNT)
    above = Path(point).absolute() if point else Path(MAC if sys.platform == "darwin" else NODES)
    places = [above / drive for drive in DRIVES]
    return next((place for place in places if place.is_dir()), above if point else places[0])


def on_nodes(share: Path) -> Path:
    """The drive's default path on the nodes: the same path, but their system is Linux."""
    return Path(NODES) / share.relative_to(MAC) if share.is_relative_to(MAC) else share


class ProjectFolder:
    def __init__(self, share: Path, project: str, runs: Path | None = None) -> None:
        self.share, self.path = share, share / project
        self.runs = runs or self.path / RUNS

    def check(self) -> None:
        if not self.share.is_dir():
            raise errors.InvalidInput(
                f"the shared drive {self.share} is not there", f"mount it, or say where it is with {MOUNT}"
            )

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One submit at a time. On a file server without locks, no lock is used."""
        self.check()
        make(self.path)
        make(self.runs)
        descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            with contextlib.suppress(OSError):
                os.fchmod(descriptor, 0o666)
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def configurations(self) -> dict[str, dict[str, Any]]:
        """Of each `param_NNN` that can be read, in their order."""
        found = {}
        for name in sorted(_listed(self.runs), key=_number):
            configuration = load(self.runs / name / CONFIGURATION) if _PARAM.fullmatch(name) else None
            if configuration is not None:
                found[name] = configuration
        return found

    def jobs(self, param_name: str) -> set[str]:
        """Jobs with results; a folder appears when its job has succeeded."""
        return {name for name in _listed(self.runs / param_name) if "num" in name}

    def next_names(self, known: Collection[str]) -> Iterator[str]:
        """Unused names for configurations; `known` are names besides those on the drive."""
        number = max(map(_number, [*_listed(self.runs), *known]), default=0)
        while True:
            number += 1
            yield f"param_{number:0>3}"

    def add(self, param_name: str, configuration: Mapping[str, Any], project_path: str) -> None:
        """Write a new configuration: `safe_load` can read it, and it contains the added names that readers expect."""
        import yaml

        added = {"param_name": param_name, "job_name": None, "project_path": project_path, "save_path": None}
        text = yaml.safe_dump({**values.shown(dict(configuration)), **added}, allow_unicode=True, sort_keys=True)
        place = self.runs / param_name
        try:
            place.mkdir()
        except FileExistsError:
            raise errors.Conflict(f"another process has just created {place}", "submit again") from None
        like_above(place)
        write(place / CONFIGURATION, text.encode())

    def copy(self, source: Path, name: str) -> None:
        """Copy a folder of data to the drive, as `<project>/<name>`; existing files are not sent again."""
        for place, folders, names in os.walk(source, followlinks=True):
            folders[:] = [each for each in folders if each != "__pycache__"]
            to = self.path / name / Path(place).relative_to(source)
            make(to)
            for file in names:
                _bring(Path(place) / file, to / file)


def load(path: Path) -> dict[str, Any] | None:
    """None if it is missing or invalid: such a folder is ignored. Only plain values are ever read from it."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Also reads tuples, as Ludwig wrote them."""

    def construct_tuple(loader: Loader, node: yaml.SequenceNode) -> tuple[Any, ...]:
        return tuple(loader.construct_sequence(node, deep=True))

    Loader.add_constructor("tag:yaml.org,2002:python/tuple", construct_tuple)
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), Loader=Loader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return None
    return found if isinstance(found, dict) else None


def identity(configuration: Mapping[str, Any]) -> Hashable:
    return values.identity({name: value for name, value in configuration.items() if name not in values.ADDED})


def make(folder: Path) -> None:
    """With the mode of the folder above: the nodes may have another account than the submitter."""
    if folder.is_dir():
        return
    if not folder.parent.is_dir():
        make(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir()
        like_above(folder)


def like_above(folder: Path) -> None:
    with contextlib.suppress(OSError):  # file servers may know no modes
        folder.chmod(folder.parent.stat().st_mode & 0o7777)


def write(path: Path, data: bytes) -> None:
    """Completely, or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(data)
    os.replace(draft, path)


def _bring(source: Path, to: Path) -> None:
    draft = to.with_name(f".{to.name}.{os.getpid()}")
    try:
        _copy(source, to, draft)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise errors.RunyardError(
            f"{source} cannot be copied to {to}: {(error.strerror or str(error)).lower()}",
            "it must be a file that you may read, and the drive needs room",
        ) from None


def _copy(source: Path, to: Path, draft: Path) -> None:
    wanted = source.stat()
    with contextlib.suppress(FileNotFoundError):
        found = to.stat()
        if found.st_size == wanted.st_size and abs(found.st_mtime - wanted.st_mtime) < SAME_TIME_S:
            return
    shutil.copyfile(source, draft)
    # A file that was just written may be written again with the same time and size: it is copied again the next time.
    is_young = time.time() - wanted.st_mtime < 2 * SAME_TIME_S
    os.utime(draft, (wanted.st_atime, wanted.st_mtime - 2 * SAME_TIME_S * is_young))
    os.replace(draft, to)


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _number(name: str) -> int:
    found = _PARAM.fullmatch(name)
    return int(found[1]) if found else 0
