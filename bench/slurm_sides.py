"""A Slurm with one user who has many tasks: handed in through runyard, and by hand as an array."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

import runyard
from runyard.client import find_yard
from tests.acceptance.cluster_yard import ClusterYard
from tests.labs.accounts import NODE_PYTHON
from tests.labs.slurm import Options, SlurmLab

PROGRAMS = ("sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo", "sacctmgr")
SITE = "bench"
AS_IT_COMES = ("SchedulerParameters", "bf_interval=30")  # Slurm's defaults; the lab's own are for tests in a hurry
PAUSE_S = 0.25  # between two looks at whether all is over, on both sides
SETTLE_S = 1.0  # until the last processes of ended jobs are counted
STALLED_S = 120.0  # without one more run that has ended


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What a sweep took. CPU times are seconds of all processes together."""

    wall_s: float
    submit_s: float
    nodes_cpu_s: float  # slurmd, slurmstepd and the tasks
    other_cpu_s: float  # slurmctld, munged and the yard with its commands
    commands: Counter[str] = field(default_factory=Counter)  # that the yard gave to the scheduler


@contextmanager
def both(place: Path, *, nodes: int, cpus: int) -> Iterator[tuple[ByRunyard, ByHand]]:
    place.chmod(0o755)  # the user is not who runs the cluster
    with SlurmLab(Options(nodes=nodes, cpus=cpus, overrides=(AS_IT_COMES,)), below=place) as lab:
        yard = ClusterYard(lab, "slurm")
        try:
            yard.start()
            yield ByRunyard(lab, yard), ByHand(lab)
        finally:
            yard.stop()


class ByRunyard:
    def __init__(self, lab: SlurmLab, yard: ClusterYard) -> None:
        self._lab, self._yard = lab, yard
        self._counted, self._log = lab.directory / "commands", yard.home / "up.log"
        self._client = runyard.Client(home=yard.home, start=False)
        address = find_yard.read_address(yard.home)
        assert address is not None, "the yard is up"
        self._process = psutil.Process(address.pid)
        self._add_site()

    def take(self, count: int, command: str) -> Taken:
        """From the first word of `runyard submit` to the moment when all are recorded as succeeded."""
        specs = self._write_specs(count, command)
        ended = self._succeeded() + count
        counted, before, cpu = self._commands(), self._lab.cpu_seconds(), self._cpu_seconds()
        begin = time.perf_counter()
        handed_in = self._yard.cli("submit", "--quiet", "--file", str(specs))
        submitted = time.perf_counter()
        _require(handed_in.returncode == 0, handed_in.stderr)
        self._wait_for(ended)
        wall_s = time.perf_counter() - begin
        time.sleep(SETTLE_S)
        after = self._lab.cpu_seconds()
        return Taken(
            wall_s=wall_s,
            submit_s=submitted - begin,
            nodes_cpu_s=after["nodes"] - before["nodes"],
            other_cpu_s=after["control"] - before["control"] + self._cpu_seconds() - cpu,
            commands=self._commands() - counted,
        )

    def _add_site(self) -> None:
        """Every option is what a user gets, but for the directory of programs that count how often they are called."""
        words = ["--kind", "slurm", "--dir", str(self._yard.home / "site"), "--python", NODE_PYTHON]
        programs = _counting_programs(self._lab, self._counted)
        added = self._yard.cli("site", "add", SITE, *words, "--option", f"bin={programs}")
        _require(added.returncode == 0, added.stderr)

    def _write_specs(self, count: int, command: str) -> Path:
        path = self._lab.directory / "sweep.json"
        runs = [{"command": command.split(), "cwd": "/", "site": SITE, "params": {"n": n}} for n in range(count)]
        path.write_text(json.dumps({"runs": runs}))
        return path

    def _wait_for(self, ended: int) -> None:
        known, since = self._succeeded(), time.monotonic()
        while (now := self._succeeded()) < ended:
            if now > known:
                known, since = now, time.monotonic()
            _require(time.monotonic() < since + STALLED_S, f"runs do not end: {self._log.read_text()[-2000:]}")
            time.sleep(PAUSE_S)

    def _succeeded(self) -> int:
        runs = self._client.health()["runs"]
        _require(not runs.get("failed") and not runs.get("cancelled"), f"some runs did not succeed: {runs}")
        return int(runs.get("succeeded", 0))

    def _commands(self) -> Counter[str]:
        return Counter(self._counted.read_text().split() if self._counted.exists() else ())

    def _cpu_seconds(self) -> float:
        used = self._process.cpu_times()
        return float(used.user + used.system + used.children_user + used.children_system)


class ByHand:
    def __init__(self, lab: SlurmLab) -> None:
        self._lab = lab

    def take(self, count: int, command: str) -> Taken:
        """From the first word of `sbatch` to the moment when squeue shows nothing of the array any more."""
        place = self._make_directory(command)
        before = self._lab.cpu_seconds()
        begin = time.perf_counter()
        job = self._lab.submit(f"--array=1-{count}", "--nodes=1", "--ntasks=1", f"--chdir={place}", f"{place}/task.sh")
        submitted = time.perf_counter()
        while self._lab.ask("squeue", "--noheader", f"--jobs={job}", "--format=%i"):
            time.sleep(PAUSE_S)
        wall_s = time.perf_counter() - begin
        time.sleep(SETTLE_S)
        after = self._lab.cpu_seconds()
        return Taken(
            wall_s=wall_s,
            submit_s=submitted - begin,
            nodes_cpu_s=after["nodes"] - before["nodes"],
            other_cpu_s=after["control"] - before["control"],
        )

    def _make_directory(self, command: str) -> Path:
        """As people have it: a script, and beside it a file of output for each task."""
        place = self._lab.directory / f"by-hand-{secrets.token_hex(4)}"
        place.mkdir()
        self._lab.user.own(place)
        (place / "task.sh").write_text(f"#!/bin/bash\n{command}\n")
        return place


def _counting_programs(lab: SlurmLab, counted: Path) -> Path:
    """The scheduler's programs, each of which writes its name down first."""
    place = lab.directory / "bin"
    place.mkdir()
    for name in PROGRAMS:
        (place / name).write_text(f'#!/bin/sh\necho {name} >> {counted}\nexec /usr/bin/{name} "$@"\n')
        (place / name).chmod(0o755)
    return place


def _require(condition: bool, complaint: str) -> None:
    if not condition:
        raise SystemExit(complaint)
