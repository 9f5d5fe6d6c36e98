"""The same scripts with `runyard` in front, on a login node of a real Slurm and of a real Grid Engine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest

from tests.acceptance.cluster_yard import ClusterYard
from tests.acceptance.test_old_scripts import CH_RUN, MNIST, SUBMIT
from tests.acceptance.witness import until
from tests.labs.accounts import NODE_PYTHON
from tests.labs.cluster import Cluster
from tests.labs.gridengine import GridEngineLab
from tests.labs.slurm import SlurmLab

SLURM_ARRAY = """#!/bin/bash
#SBATCH --job-name=digits --output=%x_%A_%a.txt
#SBATCH --array=3,5,9
#SBATCH --mem=50M --time=5 --ntasks=1

echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT in $SLURM_ARRAY_JOB_ID," \\
    "$SLURM_JOB_NAME from $SLURM_SUBMIT_DIR"
"""
GRIDENGINE_ARRAY = """#!/bin/sh
#$ -N digits -cwd -t 2-6:2
#$ -l h_rt=0:05:00

echo "task $SGE_TASK_ID of $SGE_TASK_FIRST-$SGE_TASK_LAST:$SGE_TASK_STEPSIZE in $JOB_ID is $JOB_NAME in $SGE_O_WORKDIR"
"""


class Desk(ClusterYard):
    """Its user has the yard's directory for a home; nodes find programs there once a module is loaded."""

    def __init__(self, lab: Cluster) -> None:
        super().__init__(lab, lab.kind)
        self._site += ["--setup", f"PATH={self.home}/bin:$PATH"]

    @property
    def env(self) -> dict[str, str]:
        return {**super().env, "HOME": str(self.home)}


@pytest.fixture
def desk() -> Iterator[Callable[[Cluster], Desk]]:
    made: list[Desk] = []

    def make(lab: Cluster) -> Desk:
        made.append(Desk(lab))
        made[-1].start()
        made[-1].add_site()
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture(params=["slurm", "gridengine"])
def yard(request: pytest.FixtureRequest) -> Iterator[ClusterYard]:
    lab = request.getfixturevalue(f"{request.param}_lab")()
    made = ClusterYard(lab, request.param)
    made.start()
    made.add_site()
    yield made
    made.stop()


def write(yard: ClusterYard, name: str, text: str) -> None:
    (yard.home / name).write_text(text)
    (yard.home / name).chmod(0o644)


def submit(yard: ClusterYard, *words: str) -> int:
    answer = yard.cli(*words)
    assert answer.returncode == 0, answer.stderr
    number = re.search(r"\d+", answer.stdout)
    assert number is not None, answer.stdout
    return int(number[0])


# --- the pages that people have, where they were written for ------------------------------------------------------


def test_the_array_of_the_intel_cluster(slurm_lab: Callable[..., SlurmLab], desk: Callable[[Cluster], Desk]) -> None:
    yard = desk(slurm_lab())
    (yard.home / "bin").mkdir()
    write(yard, "bin/ch-run", CH_RUN)
    (yard.home / "bin" / "ch-run").chmod(0o755)
    write(yard, "submit.sh", SUBMIT)
    write(yard, "main.py", "import sys; print('configuration', sys.argv[1:])\n")
    answer = yard.cli("sbatch", "submit.sh")
    assert answer.stdout == "Submitted batch job 1\n", answer.stderr
    assert "%A_%a" in answer.stderr
    ended = [yard.ended(run) for run in range(1, 9)]
    assert {(run["state"], run["site"]) for run in ended} == {("succeeded", "cedar")}, ended
    assert {run["node"] for run in ended} <= set(yard.lab.nodes)
    lines = (yard.home / "test.txt").read_text().splitlines()
    assert sorted(lines) == [f"configuration ['--', '--id={task}']" for task in range(1, 9)]


def test_the_walk_through_of_the_teaching_cluster(
    gridengine_lab: Callable[..., GridEngineLab], desk: Callable[[Cluster], Desk]
) -> None:
    yard = desk(gridengine_lab())
    name = "example-tf-mnist-train-job.py"
    write(yard, name, f"#!{NODE_PYTHON}\n{MNIST}")
    variables = "MLP_DATA_DIR=/disk/scratch/mlp/data,OUTPUT_DIR=$HOME/experiments"
    answer = yard.cli("qsub", "-q", "cpu", "-v", variables, name)
    assert answer.stdout == f'Your job 1 ("{name}") has been submitted\n', answer.stderr
    assert "OUTPUT_DIR is the text '$HOME/experiments'" in answer.stderr
    assert "no queue" not in answer.stderr, "the cell has it"
    ended = yard.ended(1)
    assert (ended["state"], ended["site"]) == ("succeeded", "cedar"), ended
    assert ended["node"] in yard.lab.nodes
    assert (yard.home / f"{name}.o1").read_text() == "Epoch 01: err(train)=0.31 acc(train)=0.91\n"
    assert (yard.home / f"{name}.e1").read_text() == "from /disk/scratch/mlp/data to $HOME/experiments\n"


# --- either kind of script on either kind of cluster ---------------------------------------------------------------


def test_an_array_of_slurm_on_either(yard: ClusterYard) -> None:
    write(yard, "submit.sh", SLURM_ARRAY)
    first = submit(yard, "sbatch", "--site", "cedar", "submit.sh")
    for place, task in enumerate((3, 5, 9)):
        assert yard.ended(first + place)["state"] == "succeeded"
        said = f"task {task} of 3 in {first}, digits from {yard.home}\n"
        assert (yard.home / f"digits_{first}_{task}.txt").read_text() == said
        assert yard.log(first + place) == said


def test_an_array_of_grid_engine_on_either(yard: ClusterYard) -> None:
    write(yard, "train.sh", GRIDENGINE_ARRAY)
    first = submit(yard, "qsub", "--site", "cedar", "train.sh")
    for place, task in enumerate((2, 4, 6)):
        assert yard.ended(first + place)["state"] == "succeeded"
        said = f"task {task} of 2-6:2 in {first} is digits in {yard.home}\n"
        assert (yard.home / f"digits.o{first}.{task}").read_text() == said
        assert (yard.home / f"digits.e{first}.{task}").read_text() == ""


def test_a_plain_job_is_no_task_of_an_array(yard: ClusterYard) -> None:
    """Whatever the cluster itself made of the batch."""
    script = '#!/bin/sh\necho "${SLURM_ARRAY_TASK_ID-unset} ${SGE_TASK_ID-unset}"\n'
    spec = {"script": script, "command": [], "site": "cedar"}
    write(yard, "runs.json", json.dumps([spec, spec, {**spec, "dialect": "gridengine"}]))
    ids = [int(word) for word in yard.cli("submit", "--quiet", "-f", "runs.json").stdout.split()]
    assert [yard.ended(number)["state"] for number in ids] == ["succeeded"] * 3
    nothing = "unset undefined\n" if yard.lab.kind == "gridengine" else "unset unset\n"
    assert [yard.log(number) for number in ids] == [nothing, nothing, "unset undefined\n"]


def test_the_clusters_own_words_reach_it(yard: ClusterYard) -> None:
    """Without a site's name: the yard has one of its kind, and there srun works."""
    if yard.lab.kind == "slurm":
        write(yard, "steps.sh", "#!/bin/sh\n#SBATCH -p main --comment=mine\nsrun --ntasks=1 echo from a step\n")
        number = submit(yard, "sbatch", "steps.sh")
        refused = submit(yard, "sbatch", "-p", "nosuch", "--wrap", "true")
    else:
        write(yard, "steps.sh", "#!/bin/sh\n#$ -q cpu -l hostname=ge1\necho from a step\n")
        number = submit(yard, "qsub", "-cwd", "steps.sh")
        refused = submit(yard, "qsub", "-cwd", "-q", "nosuch", "-b", "y", "true")
    assert yard.ended(number)["state"] == "succeeded"
    assert yard.log(number) == "from a step\n"
    shown = yard.ended(refused)
    assert (shown["state"], shown["reason"]) == ("failed", "rejected")


def test_the_queue_and_its_end(yard: ClusterYard) -> None:
    number = submit(yard, "sbatch", "--site", "cedar", "--job-name=nap", "--wrap", "echo up; sleep 300")
    until(lambda: " R " in yard.cli("squeue", "-h").stdout, timeout=240, what="it runs")
    assert f" {number} " in yard.cli("qstat").stdout
    assert yard.cli("scancel", str(number)).returncode == 0
    assert yard.ended(number)["state"] == "cancelled"
    assert yard.cli("squeue", "-h").stdout == ""
