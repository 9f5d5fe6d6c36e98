"""The same lines, given to the real tools and to runyard, leave the same files with the same content.

Each line has two directories, one for each side. Ids and directories are replaced by names before the comparison.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.labs.cluster import Cluster
from tests.labs.gridengine import GridEngineLab
from tests.labs.slurm import SlurmLab
from tests.labs.waiting import until
from tests.labs.yard import Yard

SAID = "ENVIRONMENT|A|B|C|DATA"
OF_SLURM = r"SLURM_(JOB_NAME|SUBMIT_DIR|ARRAY_(JOB_ID|TASK_\w+)|CPUS_PER_TASK|CPUS_ON_NODE|NTASKS|NPROCS|NNODES|PROCID)"
OF_GRIDENGINE = r"JOB_(ID|NAME)|SGE_TASK_\w+|NSLOTS|NHOSTS|NQUEUES|REQUEST|RESTARTED|PE|SGE_O_WORKDIR"
PROBE = """#!/bin/sh
echo "$#: $*"
pwd
: $DATA
env | grep -E '^({names})=' | sort
echo err >&2
"""
SLURM_LINES = [
    ["probe.sh", "a b", "c"],
    ["--array=9,2-7:2", "probe.sh"],
    ["--array=1,4", "-c", "2", "-n", "1", "-o", "o_%A_%3a_%x_%u_%n%t%s_%%.txt", "probe.sh"],
    ["--job-name", "named", "-o", "%x-%A.out", "-e", "%x-%A.err", "probe.sh"],
    ["-o", "task-%a", "probe.sh"],
    ["-o", "\\%j.txt", "probe.sh"],
    ["-o", "old.txt", "probe.sh"],
    ["-D", "logs", "-o", "./../from-logs", "probe.sh"],
    ["--export=A=1,B=x y,C=", "-o", "exported", "probe.sh"],
    ["--ntasks-per-node=2", "-o", "two", "probe.sh"],
    ["--wrap", "echo $SLURM_JOB_NAME", "--output=wrapped"],
    ["directives.sh"],
]
GRIDENGINE_LINES = [
    ["-cwd", "probe.sh", "a b", "c"],
    ["-cwd", "-t", "2-7:2", "probe.sh"],
    ["-cwd", "-t", "3-2", "-N", "turned", "-j", "Y", "probe.sh"],
    ["-cwd", "-v", "A=1,B=$HOME/experiments,DATA", "-N", "v", "probe.sh"],
    ["-cwd", "-v", "A=x=y,B=", "-N", "w", "probe.sh"],
    ["-cwd", "-v", 'A="a,b",C=c', "-N", "q", "probe.sh"],
    ["-cwd", "-o", "logs", "-e", "logs/", "-N", "there", "probe.sh"],
    ["-cwd", "-o", "out.$JOB_NAME.$TASK_ID.$FOO.$JOB_ID", "-j", "y", "probe.sh"],
    ["-cwd", "-o", "old.txt", "-j", "y", "probe.sh"],
    ["-cwd", "-pe", "smp", "2", "-N", "wide", "probe.sh"],
    ["-cwd", "-b", "y", "-N", "command", "/bin/echo", "a  b", "$JOB_NAME", ";", "exit", "3"],
    ["-cwd", "-b", "y", "-shell", "n", "-N", "direct", "/bin/echo", "a  b", "$JOB_NAME", "it's"],
    ["-cwd", "-b", "y", "-S", "/bin/bash", "-N", "bash", "echo", "$((1 + 1))", "{a,b}"],
    ["-wd", "{here}/logs", "-o", "{here}/from-logs", "-j", "y", "probe.sh"],
    ["-cwd", "-N", "bare", "bare"],
    ["directives.sh"],
]
SLURM_DIRECTIVES = """#!/bin/sh
    # an indented comment
# SBATCH --job-name=spaced
##SBATCH --job-name=double
#SBATCH --job-name=one # a comment
#SBATCH -o 'q uote.txt' --time=1:00

echo $SLURM_JOB_NAME ${SLURM_CPUS_PER_TASK-none}
#SBATCH -c 2
"""
GRIDENGINE_DIRECTIVES = """#!/bin/sh
#$ -cwd
#$ -N named # a comment
#$ -v A='x y',B=2
echo "hello [$A] [$B] [$JOB_NAME]"
#$ -j y
#$ -o said
"""


Files = dict[str, str]
Submit = Callable[..., subprocess.CompletedProcess[str]]
QUEUE = {"slurm": ["squeue", "--noheader"], "gridengine": ["qstat"]}


class Try:
    """One line, given to one of the two in a directory of its own."""

    def __init__(self, directory: Path, line: list[str], names: str, directives: str) -> None:
        self.directory, self.line = directory, line
        (directory / "logs").mkdir(parents=True)
        (directory / "old.txt").write_text("old\n")
        (directory / "probe.sh").write_text(PROBE.format(names=f"{SAID}|{names}"))
        (directory / "directives.sh").write_text(directives)
        (directory / "bare").write_text("echo no first line: $# $1\n")
        for path in [directory, *directory.rglob("*")]:
            path.chmod(0o777 if path.is_dir() else 0o666)

    def submit(self, program: str, call: Submit) -> str:
        words = [word.replace("{here}", str(self.directory)) for word in self.line]
        done = call(program, *words, cwd=self.directory)
        assert done.returncode == 0, f"{self.line}: {done.stdout}{done.stderr}"
        number = re.search(r"\d+", done.stdout)
        assert number is not None
        self.id = number[0]
        return self._nameless(done.stdout)

    def files(self) -> Files:
        found = [path for path in self.directory.rglob("*") if path.is_file()]
        return {self._nameless(str(path.relative_to(self.directory))): self._plain(path.read_text()) for path in found}

    def _nameless(self, text: str) -> str:
        return re.sub(rf"(?<!\d){self.id}(?!\d)", "<id>", text, count=1)

    def _plain(self, text: str) -> str:
        return re.sub(r"(JOB_ID=)\d+", r"\1<id>", text).replace(str(self.directory), "<here>")


@pytest.fixture
def compare(yard: Yard) -> Callable[[Cluster, str, list[list[str]], str, str], None]:
    def compare(lab: Cluster, program: str, lines: list[list[str]], names: str, directives: str) -> None:
        lab.env["DATA"] = yard.env["DATA"] = "/data"
        yard.env["USER"] = yard.env["LOGNAME"] = lab.user.name
        tries = [
            [Try(lab.directory / side / str(number), line, names, directives) for side in ("real", "ours")]
            for number, line in enumerate(lines)
        ]
        for real, ours in tries:
            assert ours.submit(program, yard.cli) == real.submit(program, lab.run)
        until(lambda: not lab.run(*QUEUE[lab.kind]).stdout.strip(), "the real queue empty", timeout_s=120)
        client = yard.client()
        until(lambda: not client.runs(state=["queued", "starting", "running"]), "our queue empty", timeout_s=120)
        for real, ours in tries:
            assert ours.files() == real.files(), real.line

    return compare


Compare = Callable[[Cluster, str, list[list[str]], str, str], None]


def test_sbatch(slurm_lab: Callable[..., SlurmLab], compare: Compare) -> None:
    compare(slurm_lab(), "sbatch", SLURM_LINES, OF_SLURM, SLURM_DIRECTIVES)


def test_qsub(gridengine_lab: Callable[..., GridEngineLab], compare: Compare) -> None:
    compare(gridengine_lab(), "qsub", GRIDENGINE_LINES, OF_GRIDENGINE, GRIDENGINE_DIRECTIVES)
