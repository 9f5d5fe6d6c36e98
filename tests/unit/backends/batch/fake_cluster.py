"""A Slurm of small programs that say what they are told to: for answers that a real one gives only in bad times."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from runyard.backends.base import Batch, Job
from runyard.backends.batch.lifecycle import BatchBackend
from runyard.backends.batch.options import parse
from runyard.backends.batch.slurm import Slurm
from runyard.hosts.local import LocalHost
from runyard.model.resources import Resources
from runyard.model.wire import AttemptKey

PROGRAM = """#!/bin/sh
place=$(dirname "$0")
name=$(basename "$0")
echo "$name $*" >> "$place/calls"
[ -e "$place/$name.hangs" ] && sleep 600
cat "$place/$name.out" 2>/dev/null
cat "$place/$name.err" >&2 2>/dev/null
exit "$(cat "$place/$name.code" 2>/dev/null || echo 0)"
"""
PROGRAMS = ("sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo", "sacctmgr")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


IMPATIENT = {"command_timeout": "3"}  # for programs that hang; those that answer take longer on a busy machine


class FakeCluster:
    def __init__(self, directory: Path) -> None:
        self.programs, self.site = directory / "bin", directory / "site"
        self.programs.mkdir()
        self.site.mkdir()
        for name in PROGRAMS:
            (self.programs / name).write_text(PROGRAM)
            (self.programs / name).chmod(0o755)
        self.clock = Clock()
        self._made = 0

    def says(self, program: str, out: str = "", err: str = "", code: int = 0, *, hangs: bool = False) -> None:
        for suffix, text in (("out", out), ("err", err), ("code", str(code))):
            (self.programs / f"{program}.{suffix}").write_text(text)
        (self.programs / f"{program}.hangs").unlink(missing_ok=True)
        if hangs:
            (self.programs / f"{program}.hangs").touch()

    def calls(self, program: str) -> list[str]:
        try:
            lines = (self.programs / "calls").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [line for line in lines if line.split()[0] == program]

    def backend(self, **more: str) -> BatchBackend:
        given = {"bin": str(self.programs), "command_timeout": "20", "poll_interval": "10", "python": sys.executable}
        settings, dialect = parse({**given, **more}, Slurm)
        return _Backend(dialect, LocalHost(), os.fspath(self.site), settings, self.clock)

    def job(self) -> Job:
        self._made += 1
        directory = self.site / "runs" / str(self._made) / "a1"
        directory.mkdir(parents=True)
        key = AttemptKey(run=self._made, attempt=1)
        return Job(key=key, directory=str(directory), tag="t", batch="ry-1-1-7", index=self._made)

    def age(self, job: Job, seconds: float) -> None:
        """As if its batch had been handed over so long ago."""
        manifest = self.site / "batches" / job.batch / "manifest.json"
        then = manifest.stat().st_mtime - seconds
        os.utime(manifest, (then, then))


class _Backend(BatchBackend):
    build = None  # type: ignore[assignment]  # made from its parts


def batch_of(*jobs: Job, **options: str) -> Batch:
    return Batch(name=jobs[0].batch, resources=Resources(), jobs=jobs, options=options)
