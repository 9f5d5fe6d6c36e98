"""This machine as a host, and what it has: cpus and memory we may use, its file systems, a scheduler that answers."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from runyard.hosts import scan
from runyard.hosts.base import CHUNK, SCAN_BYTES, Host, Known, Listing, Output, Parcel, Result, Search, Seen, Source
from runyard.hosts.far import commands, inputs, outputs, scanning
from runyard.hosts.far import files as far_files

SCHEDULERS = {"slurm": ["sinfo", "--noheader"], "gridengine": ["qhost"]}
SCHEDULER_PATIENCE_S = 3.0


class LocalHost:
    pause = 0.0
    copies = False

    def run(self, argv: Sequence[str], *, timeout: float, input: bytes = b"") -> Result:
        code, stdout, stderr = commands.run([os.fsencode(word) for word in argv], input, timeout)
        return Result(code=code, stdout=stdout, stderr=stderr)

    def put(self, root: str, files: Mapping[str, bytes], directories: Iterable[str] = ()) -> None:
        named = ((os.fsencode(name), data) for name, data in files.items())
        far_files.put(os.fsencode(root), named, map(os.fsencode, directories))

    def install(self, target: str, files: Mapping[str, bytes]) -> None:
        far_files.install(os.fsencode(target), {os.fsencode(name): data for name, data in files.items()})

    def deliver(self, parcels: Sequence[Parcel]) -> None:
        for parcel in parcels:
            inputs.receive([os.fsencode(target) for target in parcel.targets], parcel.digest, parcel.read())

    def fetch(self, path: str) -> bytes:
        return far_files.fetch(os.fsencode(path))

    def fetch_many(self, paths: Sequence[str]) -> dict[str, bytes]:
        found = {}
        for path in paths:
            with contextlib.suppress(OSError):
                found[path] = self.fetch(path)
        return found

    def filled(self, directories: Sequence[str]) -> set[str]:
        return {directory for directory in directories if far_files.has_entries(os.fsencode(directory))}

    def scan(self, root: str, known: Iterable[Known]) -> list[Seen]:
        found = scanning.scan(os.fsencode(root), scan.question(known), CHUNK, SCAN_BYTES)
        return [scan.answer(told, pieces) for told, pieces in found]

    def find(self, searches: Sequence[Search]) -> list[Listing]:
        return [listing(outputs.find(dataclasses.asdict(search), lambda: None)) for search in searches]

    @contextlib.contextmanager
    def borrow(self, sources: Sequence[Source]) -> Iterator[dict[str, Path]]:
        yield {source.digest: Path(source.path) for source in sources}


def listing(found: Iterable[dict[str, Any]]) -> Listing:
    """Of what `far.outputs` tells."""
    made = Listing()
    for told in found:
        if "note" in told:
            made.notes.append(told["note"])
        else:
            made.files.append(Output(path=told["path"], size=told["size"], digest=told["digest"], mode=told["mode"]))
    return made


def make_directory(path: str) -> None:
    far_files.make_directory(os.fsencode(path))


def write_file(path: str, data: bytes, *, durable: bool = False) -> None:
    """Replace a file as a whole: a reader finds the old one or the new one, never a part. `durable`: on disk, too."""
    far_files.write(os.fsencode(path), data, durable)


def usable_cpus(root: Path = Path("/")) -> int:
    """What the affinity mask and the cgroup's quota leave us, at least one."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = [quota for directory in _cgroups(root, "cpu") if (quota := _cpu_quota(directory)) is not None]
    return max(1, min([count, *(int(quota) for quota in quotas)]))


def usable_memory(root: Path = Path("/")) -> int:
    """Bytes: the machine's, or the smallest limit of the cgroups we are in."""
    limits = [limit for directory in _cgroups(root, "memory") if (limit := _memory_limit(directory)) is not None]
    return min([_machine_memory(), *limits])


def _machine_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _cgroups(root: Path, controller: str) -> Iterator[Path]:
    """The directories of our cgroup and of its parents, where a limit of this kind may be written."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, inside = line.split(":", 2)
        if number != "0" and controller not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / ("" if number == "0" else controllers)
        place = Path(os.path.normpath(f"{mount}/{inside}"))
        while place.is_relative_to(mount):
            yield place
            place = place.parent


def _cpu_quota(cgroup: Path) -> float | None:
    words = (_text(cgroup / "cpu.max") or _text(cgroup / "cpu.cfs_quota_us")).split()
    if not words or words[0] in ("max", "-1"):
        return None
    period = words[1] if len(words) > 1 else _text(cgroup / "cpu.cfs_period_us") or "100000"
    return int(words[0]) / int(period)


def _memory_limit(cgroup: Path) -> int | None:
    text = _text(cgroup / "memory.max") or _text(cgroup / "memory.limit_in_bytes")
    return int(text) if text.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def detect_scheduler(host: Host | None = None) -> str | None:
    """The batch scheduler that answers here, if any. An installed client without a cluster behind it does not count."""
    asked = host or LocalHost()
    for name, command in SCHEDULERS.items():
        if asked.run(command, timeout=SCHEDULER_PATIENCE_S).ok:
            return name
    return None


_: Host = LocalHost()
