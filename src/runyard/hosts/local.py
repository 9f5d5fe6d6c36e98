"""This machine as a host, and what it has: cpus and memory we may use, its file systems, a scheduler that answers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from runyard.hosts import scan
from runyard.hosts.base import Host, Known, Result, Seen

SCHEDULERS = {"slurm": ["sinfo", "--noheader"], "gridengine": ["qhost"]}
SCHEDULER_PATIENCE_S = 3.0


class LocalHost:
    def run(self, argv: Sequence[str], *, timeout: float, input: bytes = b"") -> Result:
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            return Result(code=127, stderr=f"{argv[0]}: {error.strerror}".encode())
        with process:
            try:
                stdout, stderr = process.communicate(input, timeout)
            except subprocess.TimeoutExpired:
                _kill_group(process)
                return Result(code=None, stderr=f"{argv[0]}: no answer within {timeout:g} seconds".encode())
        return Result(code=process.returncode, stdout=stdout, stderr=stderr)

    def put(self, root: str, files: Mapping[str, bytes], directories: Iterable[str] = ()) -> None:
        make_directory(root)
        for name in directories:
            make_directory(os.path.join(root, name))
        for name, data in files.items():
            write_file(os.path.join(root, name), data)

    def fetch(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def scan(self, root: str, known: Iterable[Known]) -> list[Seen]:
        return scan.scan(root, known)


def make_directory(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        make_directory(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)


def write_file(path: str, data: bytes, *, durable: bool = False) -> None:
    """Replace a file as a whole: a reader finds the old one or the new one, never a part. `durable`: on disk, too."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(handle, rest) :]
            if durable:
                os.fsync(handle)
        finally:
            os.close(handle)
        os.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End the command and what it started in its session; its pipes are closed unread: others may hold them."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


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
