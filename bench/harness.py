"""What the measurements share: a directory on a real disk, interleaved repetitions, and one way to tell a result."""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.labs import table
from tests.labs.yard import Yard

MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")


@dataclass(frozen=True, kw_only=True)
class Result:
    """One measured number beside that of the alternative, in the same unit."""

    letter: str
    what: str
    value: float
    against: str
    alternative: float
    unit: str
    target: str = ""
    met: bool | None = None
    ratio: float | None = None  # where it is not that of the two numbers

    def line(self) -> str:
        ratio = self.ratio or (self.value / self.alternative if self.alternative else float("nan"))
        verdict = {None: "", True: "met", False: "MISSED"}[self.met]
        return (
            f"({self.letter}) {self.what}\n"
            f"    runyard {self.value:,.4g} {self.unit} · {self.against} {self.alternative:,.4g} {self.unit} · "
            f"ratio {ratio:.3g}" + (f" · target {self.target}: {verdict}" if self.target else "")
        )


@contextmanager
def workspace() -> Iterator[Path]:
    """A directory on a real disk: RUNYARD_BENCH_DIR, or /var/tmp."""
    place = Path(tempfile.mkdtemp(prefix="ry-bench-", dir=os.environ.get("RUNYARD_BENCH_DIR", "/var/tmp")))
    try:
        if file_system(place) in MEMORY_FILE_SYSTEMS:
            raise SystemExit(f"{place} is in memory; set RUNYARD_BENCH_DIR to a directory on a disk")
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def yard(place: Path, *, config: str = "", **settings: object) -> Iterator[Yard]:
    """`config` is the text of its config.toml."""
    one = Yard(below=place, **settings)
    (one.home / "config.toml").write_text(config)
    try:
        yield one.start()
    finally:
        one.remove()


def lacks(letter: str, *components: str) -> bool:
    """Whether a measurement must be left out here, which is told with the reason."""
    missing = next(filter(None, (table.look_up(name).missing for name in components)), "")
    if missing:
        print(f"({letter}) left out: {missing}", file=sys.stderr)
    return bool(missing)


def describe(place: Path) -> str:
    return (
        f"{os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}; "
        f"store on {file_system(place)} with {fsync_rate(place):,.0f} fsyncs/s and "
        f"{file_rate(place):,.0f} new files/s"
    )


def file_system(place: Path) -> str:
    """The type of the file system; the longest mount point above it is the one."""
    best, kind = "", ""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, this, *_ = line.split()
        if place.is_relative_to(mount) and len(mount) >= len(best):
            best, kind = mount, this
    return kind


def fsync_rate(place: Path, count: int = 300) -> float:
    """How often a second a 4 KB write reaches the disk: what bounds every durable commit."""
    with tempfile.TemporaryFile(dir=place) as file:
        begin = time.perf_counter()
        for _ in range(count):
            os.write(file.fileno(), bytes(4096))
            os.fsync(file.fileno())
        return count / (time.perf_counter() - begin)


def file_rate(place: Path, count: int = 1000) -> float:
    """How many files a second can be made: runs have directories. For minutes after very many files were removed, ext4
    takes ten times as long, because it does not use their numbers again so soon."""
    with tempfile.TemporaryDirectory(dir=place) as directory:
        begin = time.perf_counter()
        for number in range(count):
            Path(directory, str(number)).touch()
        return count / (time.perf_counter() - begin)


def interleaved(repetitions: int, candidates: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """The median of each candidate; they take turns, so that a busy moment of the machine hits all of them."""
    seen: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(repetitions):
        for name, measure in candidates.items():
            seen[name].append(measure())
    return {name: statistics.median(values) for name, values in seen.items()}


def seconds(command: list[str] | str, **options: object) -> float:
    """Wall time of a command that must succeed."""
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, shell=isinstance(command, str), **options)  # type: ignore[call-overload]
    return time.perf_counter() - begin


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
