"""Scripts written for Slurm and Grid Engine run on a machine that has neither, and answer in the words users know."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.witness import until
from tests.labs.yard import Yard

CH_RUN = """#!/bin/sh
# Charliecloud for a test: the options and the image go, the command stays.
while [ "${1#--}" != "$1" ]; do shift; done
shift
exec "$@"
"""

# As the page on the Intel cluster has it, with the lines of its command joined.
SUBMIT = """#!/bin/bash
#
#SBATCH --job-name=/home/carta/docker_repo/docker_latest/test
#SBATCH --output=test.txt
#SBATCH --nodes=1
#
#SBATCH --array=1-8

ch-run --set-env=config.env \\
    --cd=/home/carta/docker_repo antonio.lmn \\
    python3 main.py \\
    -- --id=$SLURM_ARRAY_TASK_ID
"""

ARRAY_OF_128 = """#!/bin/bash
#SBATCH --oversubscribe
#SBATCH --partition=xeon
#SBATCH --array=1-128
#SBATCH --distribution=block:block
#SBATCH --ntasks=1
#SBATCH --mem=1024K
#SBATCH --cpus-per-task=1
#SBATCH --tasks-per-node=4
#SBATCH --cores-per-socket=8
#SBATCH --output=./slurm_logs/job%j.out
echo $SLURM_ARRAY_TASK_ID
"""

MULTINODE = """#!/bin/bash

#SBATCH --job-name=test
#SBATCH --cpus-per-task=5
#SBATCH --nodes=3
#SBATCH --tasks-per-node 1

worker_num=2 # Must be one less that the total number of nodes
nodes=$(scontrol show hostnames $SLURM_JOB_NODELIST) # Getting the node names
ip_prefix=$(srun --nodes=1 --ntasks=1 -w $node1 hostname --ip-address)
"""

MNIST = """import os, sys
assert "MLP_DATA_DIR" in os.environ, "An environment variable MLP_DATA_DIR must be set"
assert "OUTPUT_DIR" in os.environ, "An environment variable OUTPUT_DIR must be set"
print("Epoch 01: err(train)=0.31 acc(train)=0.91")
print("from", os.environ["MLP_DATA_DIR"], "to", os.environ["OUTPUT_DIR"], file=sys.stderr)
"""


ROOT = Path(__file__).resolve().parents[2]
PAGES = {"from-slurm-scripts.md": "submit.sh", "from-gridengine.md": "train.sh"}


class Desk:
    """Somebody with a home, a working directory and a yard."""

    def __init__(self, yard: Yard, place: Path) -> None:
        self.yard = yard
        self.home, self.work = place / "home", place / "work"
        self.home.mkdir()
        self.work.mkdir()
        programs = place / "bin"
        programs.mkdir()
        yard.env["HOME"] = str(self.home)
        yard.env["PATH"] = f"{programs}:{yard.env['PATH']}"
        (programs / "ch-run").write_text(CH_RUN)
        (programs / "ch-run").chmod(0o755)

    def run(self, *words: str, **options: object) -> subprocess.CompletedProcess[str]:
        return self.yard.cli(*words, **{"cwd": self.work, **options})

    def say(self, *words: str, **options: object) -> str:
        done = self.run(*words, **options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def submit(self, *words: str, **options: object) -> int:
        """The id that the answer has."""
        said = self.say(*words, **options)
        match = re.search(r"\d+", said)
        assert match is not None, said
        return int(match[0])

    def script(self, name: str, text: str) -> Path:
        """Without the x bit."""
        path = self.work / name
        path.write_text(text)
        path.chmod(0o644)
        return path

    def wait(self, *ids: int) -> None:
        self.run("wait", *map(str, ids))

    def state(self, number: int) -> str:
        return str(self.yard.client().run(number).state)


@pytest.fixture
def desk(yard: Yard, tmp_path: Path) -> Desk:
    return Desk(yard, tmp_path)


# --- the pages that people have -----------------------------------------------------------------------------------


def test_the_array_of_the_intel_cluster(desk: Desk) -> None:
    desk.script("submit.sh", SUBMIT)
    desk.script("main.py", "import sys; print('configuration', sys.argv[1:])\n")
    done = desk.run("sbatch", "submit.sh")
    assert done.stdout == "Submitted batch job 1\n"
    assert "all 8 tasks append their output to one file" in done.stderr
    assert "%A_%a" in done.stderr
    desk.wait(*range(1, 9))
    lines = (desk.work / "test.txt").read_text().splitlines()
    assert sorted(lines) == [f"configuration ['--', '--id={task}']" for task in range(1, 9)]
    assert desk.yard.client().run(3).logs() == "configuration ['--', '--id=3']\n"


def test_the_page_as_it_is_pasted(desk: Desk) -> None:
    """Indented, and without line continuations: each slip is told with its fix."""
    pasted = "".join(f"    {line}\n" for line in SUBMIT.splitlines())
    desk.script("indented.sh", pasted)
    refused = desk.run("sbatch", "indented.sh")
    assert refused.returncode == 2
    assert "remove the blanks before #! and before each #SBATCH" in refused.stderr
    desk.script("broken.sh", SUBMIT.replace(" \\\n", "\n"))
    said = desk.run("sbatch", "broken.sh").stderr
    assert "line 10 of the script: it begins with '--cd=/home/carta/docker_repo'" in said
    assert "--job-name=test" in said


def test_the_array_of_128(desk: Desk) -> None:
    desk.script("jobarr_test.sh", ARRAY_OF_128)
    told = desk.run("sbatch", "jobarr_test.sh").stderr
    assert f"mkdir -p {desk.work}/slurm_logs" in told
    assert "this yard has no partition 'xeon'" in told
    assert "only Slurm itself can use --oversubscribe, --distribution, --cores-per-socket" in told
    desk.wait(1)
    assert "no such directory" in desk.yard.client().run(1).detail
    (desk.work / "slurm_logs").mkdir()
    first = desk.submit("sbatch", "--wait", "jobarr_test.sh", timeout=300)
    for task in (1, 64, 128):
        assert (desk.work / "slurm_logs" / f"job{first + task - 1}.out").read_text() == f"{task}\n"


def test_the_multinode_script_needs_slurm(desk: Desk) -> None:
    desk.script("submit_multinode.sh", MULTINODE)
    refused = desk.run("sbatch", "submit_multinode.sh")
    assert refused.stderr.startswith("error: the script needs scontrol, and there is no Slurm in this yard\nfix: ")
    assert refused.returncode == 2
    assert desk.yard.client().runs() == []


def test_the_walk_through_of_the_teaching_cluster(desk: Desk) -> None:
    (desk.home / "experiments").mkdir()
    desk.script("example-tf-mnist-train-job.py", f"#!{sys.executable}\n{MNIST}")
    words = ["-q", "cpu", "-v", "MLP_DATA_DIR=/disk/scratch/mlp/data,OUTPUT_DIR=$HOME/experiments"]
    done = desk.run("qsub", *words, "example-tf-mnist-train-job.py")
    assert done.stdout == 'Your job 1 ("example-tf-mnist-train-job.py") has been submitted\n'
    assert "OUTPUT_DIR is the text '$HOME/experiments'" in done.stderr, "what Grid Engine does, and what it costs"
    assert "this yard has no queue 'cpu'" in done.stderr
    desk.wait(1)
    name = "example-tf-mnist-train-job.py"
    assert (desk.home / f"{name}.o1").read_text() == "Epoch 01: err(train)=0.31 acc(train)=0.91\n"
    assert (desk.home / f"{name}.e1").read_text() == "from /disk/scratch/mlp/data to $HOME/experiments\n"
    assert desk.state(1) == "succeeded"


def test_the_wrapper_of_the_teaching_cluster(desk: Desk) -> None:
    """It sets a variable and does not export it: told before, and failing as it did there."""
    (desk.home / "train.py").write_text(MNIST)
    wrapper = f"#!/bin/sh\n\nMLP_DATA_DIR='/disk/scratch/mlp/data'\n{sys.executable} $HOME/train.py\n"
    (desk.home / "mlp-job.sh").write_text(wrapper)
    done = desk.run("qsub", "-q", "cpu", f"{desk.home}/mlp-job.sh")
    assert "MLP_DATA_DIR is set, but not exported" in done.stderr
    assert "write export MLP_DATA_DIR='/disk/scratch/mlp/data'" in done.stderr
    desk.wait(1)
    assert "MLP_DATA_DIR must be set" in (desk.home / "mlp-job.sh.e1").read_text()
    (desk.home / "mlp-job.sh").write_text(wrapper.replace("MLP_DATA", "export MLP_DATA"))
    desk.say("qsub", "-q", "cpu", f"{desk.home}/mlp-job.sh")
    desk.wait(2)
    assert desk.state(2) == "succeeded"


def test_a_missing_interpreter_is_an_error_state_with_its_reason(desk: Desk) -> None:
    desk.script("train.py", "#!/disk/scratch/mlp/miniconda2/bin/python\nprint(1)\n")
    number = desk.submit("qsub", "-q", "cpu", "train.py")
    desk.wait(number)
    assert re.search(rf"^ +{number} \S+ train.py +\S+ +Eqw ", desk.say("qstat"), re.MULTILINE)
    errors = [line for line in desk.say("qstat", "-j", str(number)).splitlines() if "error" in line]
    assert errors[0].startswith("error reason          1:      ")
    assert errors[0].endswith("error: no such program: /disk/scratch/mlp/miniconda2/bin/python")
    assert re.fullmatch(rf"\S+ has deleted job {number}\n", desk.say("qdel", str(number)))
    assert desk.say("qstat") == ""
    gone = desk.run("qstat", "-j", str(number))
    assert gone.returncode == 1
    assert f"Following jobs do not exist: {number}" in gone.stderr


# --- what each tool promises --------------------------------------------------------------------------------------


def test_the_queue_in_both_tools_words(desk: Desk) -> None:
    running = desk.submit("sbatch", "--array=1-5%2", "--job-name=nap", "--wrap", "sleep 600")
    held = desk.submit("qsub", "-cwd", "-hold_jid", str(running), "-N", "later", "-b", "y", "true")
    until(lambda: desk.say("squeue", "-h", "-t", "R").count("\n") == 2)
    lines = [line.split() for line in desk.say("squeue").splitlines()]
    assert lines[0] == ["JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "NODES", "NODELIST(REASON)"]
    shown = {line[0]: (line[2], line[4], line[-1]) for line in lines[1:]}
    assert shown[f"{running}_[3-5%2]"] == ("nap", "PD", "(JobArrayTaskLimit)")
    assert shown[str(held)] == ("later", "PD", "(Dependency)")
    assert shown[f"{running}_1"][:2] == ("nap", "R")
    assert "RUNNING" in desk.say("squeue", "-l", "-j", f"{running}_2")
    assert desk.say("squeue", "-h", "-o", "%i %T", "-j", f"{running}_3") == f"{running}_3 PENDING\n"
    states = {line.split()[0]: line.split()[4] for line in desk.say("qstat").splitlines()[2:]}
    assert (states[str(running)], states[str(held)]) == ("qw", "hqw")
    assert desk.say("scancel", f"{running}_3,{running}_[4]") == ""
    assert re.search(rf"has registered the job-array task {running}.1 for deletion", desk.say("qdel", f"{running}.1"))
    desk.say("scancel", "-n", "nap")
    desk.wait(*range(running, running + 5), held)
    assert [desk.state(number) for number in range(running, running + 5)] == ["cancelled"] * 5
    assert desk.state(held) == "succeeded", "-hold_jid asks only that they have ended"
    assert desk.say("squeue", "-h") == ""


def test_dependencies_of_slurm(desk: Desk) -> None:
    good = desk.submit("sbatch", "--array=1-2", "--wrap", "sleep 1; exit $((SLURM_ARRAY_TASK_ID - 1))")
    both = desk.submit("sbatch", f"--dependency=afterok:{good}", "--wrap", "true")
    first = desk.submit("sbatch", f"--dependency=afterok:{good}_1", "--wrap", "true")
    always = desk.submit("sbatch", f"--dependency=afterany:{good},singleton", "--wrap", "true")
    each = desk.submit("sbatch", f"--dependency=aftercorr:{good}", "--array=1-2", "--wrap", "true")
    desk.wait(good, good + 1, both, first, always, each, each + 1)
    states = [desk.state(number) for number in (both, first, always, each, each + 1)]
    assert states == ["failed", "succeeded", "succeeded", "succeeded", "failed"]
    assert desk.yard.client().run(both).reason == "dependency"
    for words, sentence in (
        (["--dependency=afternotok:1"], "'afternotok' is not supported"),
        (["--dependency=afterok:999"], "there is no job 999"),
    ):
        assert sentence in desk.run("sbatch", *words, "--wrap", "true").stderr


def test_output_is_written_live_where_the_tools_put_it(desk: Desk) -> None:
    slurm = desk.submit("sbatch", "-e", "%x-%j.err", "--wrap", "echo out; echo err >&2; sleep 600")
    grid = desk.submit(
        "qsub", "-cwd", "-N", "name", "-shell", "n", "-b", "y", "/bin/sh", "-c", "echo out; echo err >&2; sleep 600"
    )
    expected = {
        f"slurm-{slurm}.out": "out\n", f"wrap-{slurm}.err": "err\n", f"name.o{grid}": "out\n", f"name.e{grid}": "err\n",
    }  # fmt: skip
    until(lambda: {p.name: p.read_text() for p in desk.work.iterdir()} == expected)
    until(lambda: sorted(desk.yard.client().run(slurm).logs().splitlines()) == ["err", "out"])
    desk.say("scancel", str(slurm), str(grid))


def test_the_script_is_copied_at_submit(desk: Desk) -> None:
    blocker = desk.submit("sbatch", "-n2", "--wrap", "sleep 1")
    path = desk.script("job.sh", "#!/bin/sh\necho first $1\n")
    number = desk.submit("sbatch", "job.sh", "a b")
    path.write_text("#!/bin/sh\necho second\n")
    desk.wait(blocker, number)
    assert (desk.work / f"slurm-{number}.out").read_text() == "first a b\n"


def test_a_script_by_standard_input(desk: Desk) -> None:
    number = desk.submit("sbatch", input="#!/bin/sh\necho $SLURM_JOB_NAME\n")
    other = desk.submit("qsub", "-cwd", input="echo $JOB_NAME $SGE_TASK_ID\n")
    desk.wait(number, other)
    assert (desk.work / f"slurm-{number}.out").read_text() == "sbatch\n"
    assert (desk.work / f"STDIN.o{other}").read_text() == "STDIN undefined\n"


def test_waiting_and_terse_answers(desk: Desk) -> None:
    done = desk.run("sbatch", "--wait", "--parsable", "--wrap", "exit 3")
    assert (done.stdout, done.returncode) == ("1\n", 3)
    done = desk.run("qsub", "-cwd", "-sync", "y", "-terse", "-t", "1-2", "-b", "y", "exit $SGE_TASK_ID")
    assert done.stdout == "2.1-2:1\nJob 2.1 exited with exit code 1.\nJob 2.2 exited with exit code 2.\n"
    assert done.returncode == 2
    document = json.loads(desk.say("sbatch", "--json", "--export=NONE", "--wrap", "true"))
    assert document == {"job": 4, "runs": [4], "notices": []}


def test_each_tool_has_its_own_environment(desk: Desk) -> None:
    desk.yard.env |= {"LR": "0.1", "UNUSED": "1"}
    text = "#!/bin/sh\necho ${LR-unset} $PWD\nenv | grep -c ^UNUSED=\n"
    desk.script("job.sh", text)
    ids = [
        desk.submit("sbatch", "job.sh"), desk.submit("sbatch", "--export=NONE", "job.sh"),
        desk.submit("qsub", "-o", f"{desk.work}/slurm-3.out", "job.sh"),
        desk.submit("qsub", "-cwd", "-V", "-o", "slurm-4.out", "job.sh"),
        desk.submit("sbatch", "--export=LR=7,UNUSED", "job.sh"),
    ]  # fmt: skip
    desk.wait(*ids)
    said = [(desk.work / f"slurm-{number}.out").read_text().splitlines() for number in ids]
    assert said == [
        [f"0.1 {desk.work}", "0"], [f"unset {desk.work}", "0"], [f"unset {desk.home}", "0"], [f"0.1 {desk.work}", "0"],
        [f"7 {desk.work}", "1"],
    ]  # fmt: skip


def test_secrets_are_nowhere(desk: Desk) -> None:
    desk.yard.env |= {
        "WANDB_API_KEY": "s3cret-one",
        "PROXY": "http://ann:s3cret-two@proxy/",
        "GH_TOKEN": "s3cret-three",
    }
    desk.script("job.sh", "#!/bin/sh\necho ${WANDB_API_KEY-kept} ${PROXY-kept} ${GH_TOKEN-kept}\n")
    told = desk.run("sbatch", "job.sh").stderr
    assert "the script wants WANDB_API_KEY,PROXY,GH_TOKEN, which looks like a secret" in told
    desk.wait(1)
    assert (desk.work / "slurm-1.out").read_text() == "kept kept kept\n"
    assert b"s3cret" not in b"".join(files_of(desk.yard.home))
    with sqlite3.connect(desk.yard.home / "yard.db") as database:
        assert "s3cret" not in str(database.execute("SELECT spec FROM runs").fetchall())


def files_of(home: Path) -> Iterator[bytes]:
    """What is in them; those that go while somebody looks have nothing to tell."""
    for folder, _, names in os.walk(home):
        for path in (Path(folder, name) for name in names):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file():
                    yield path.read_bytes()


NOT_SUPPORTED = [
    (["sbatch", "--begin=now", "x.sh"], "sbatch: --begin is not supported"),
    (["sbatch", "--arry=1-3", "x.sh"], "sbatch: there is no option --arry"),
    (["sbatch", "nosuch.sh"], "unable to open nosuch.sh: no such file or directory"),
    (["qsub", "-now", "y", "x.sh"], "qsub: -now is not supported"),
    (["qsub", "-N", "a/b", "x.sh"], "-N: the name must not contain /"),
    (["squeue", "-j", "99"], "slurm_load_jobs error: Invalid job id specified"),
    (["squeue", "-t", "BOGUS"], "invalid job state specified: BOGUS"),
    (["squeue", "42"], "squeue: unexpected argument '42'"),
    (["scancel"], "no job identification provided"),
    (["scancel", "-t", "BOGUS", "99"], "invalid job state specified: BOGUS"),
    (["scancel", "x"], "Invalid job id x"),
    (["qstat", "-xml"], "qstat: -xml is not supported"),
    (["qstat", "-g", "c"], "qstat: -g c is not supported"),
    (["qstat", "-s", "z"], "qstat: -s z is not supported"),
    (["qstat", "42"], "qstat: unexpected argument '42'"),
    (["qdel"], "no job was named"),
]


def test_what_is_not_supported_is_named(desk: Desk) -> None:
    desk.script("x.sh", "#!/bin/sh\n")
    for words, sentence in NOT_SUPPORTED:
        done = desk.run(*words)
        assert done.returncode != 0
        assert done.stderr.splitlines()[0] == f"error: {sentence}"


def test_how_to_answer_may_stand_in_the_script(desk: Desk) -> None:
    desk.script("slurm.sh", "#!/bin/sh\n#SBATCH --wait --parsable\nexit 3\n")
    done = desk.run("sbatch", "slurm.sh")
    assert (done.stdout, done.returncode) == ("1\n", 3)
    desk.script("grid.sh", "#!/bin/sh\n#$ -cwd -terse -sync y\nexit 4\n")
    done = desk.run("qsub", "grid.sh")
    assert (done.stdout, done.returncode) == ("2\nJob 2 exited with exit code 4.\n", 4)


def test_what_is_mine_is_not_what_others_have(desk: Desk) -> None:
    """Somebody who may do everything, and has no runs."""
    theirs = desk.submit("sbatch", "--job-name=nap", "--wrap", "sleep 600")
    token = desk.say("token", "create", "grace", "--role", "admin", "-q").strip()
    desk.yard.env["RUNYARD_TOKEN"] = token
    for words in (["scancel", "--me"], ["qdel", "nap"], ["qdel", "-u", "grace"], ["qdel", "-u", "grace", str(theirs)]):
        desk.run(*words)
    assert desk.say("qstat") == desk.say("squeue", "-h", "--me") == ""
    assert desk.say("squeue", "-h", "-o", "%i %T") in (f"{theirs} RUNNING\n", f"{theirs} PENDING\n")
    desk.say("scancel", str(theirs))


def test_lists_and_patterns_of_grid_engine(desk: Desk) -> None:
    ids = [desk.submit("qsub", "-cwd", "-N", name, "-b", "y", "sleep 600") for name in ("a1", "a2", "b1", "b2", "c")]
    held = desk.submit("qsub", "-cwd", "-hold_jid", "a?,c", "-N", "later", "-b", "y", "true")
    assert desk.yard.client().run(held).spec["after_any"] == [ids[0], ids[1], ids[4]]
    array = desk.submit("qsub", "-cwd", "-N", "tasks", "-t", "1-2", "-b", "y", "sleep 600")
    assert f"task {array}.2" in desk.say("qdel", "tasks", "-t", "2")
    desk.wait(array + 1)
    assert desk.state(array) != "cancelled"
    desk.say("qdel", "a*,b1,tasks")
    desk.wait(*ids[:3], array)
    for nothing in (["qdel", ""], ["qdel", "-u", ""], ["scancel", ""], ["scancel", "--me", ""]):
        assert desk.run(*nothing).returncode != 0, "a variable that a script did not set"
    assert {line.split()[2] for line in desk.say("qstat", "-u", "*").splitlines()[2:]} == {"b2", "c", "later"}
    desk.say("qdel", "-u", "nobody,*")
    desk.wait(*ids[3:], held)
    assert desk.say("qstat") == ""


def test_jobs_that_never_were(desk: Desk) -> None:
    done = desk.run("scancel", "99")
    assert (done.returncode, done.stderr.splitlines()) == (
        0, ["scancel: error: Kill job error on job id 99: Invalid job id specified"],
    )  # fmt: skip
    done = desk.run("qdel", "99")
    assert (done.returncode, done.stdout) == (1, 'denied: job "99" does not exist\n')


def test_the_first_sbatch_starts_a_yard(make_yard: Callable[..., Yard], tmp_path: Path) -> None:
    yard = make_yard(cpus=1)
    yard.stop()
    done = yard.cli("sbatch", "--wait", "--wrap", "true", cwd=tmp_path)
    assert done.stdout == "Submitted batch job 1\n"
    assert "starting one in the background" in done.stderr
    yard.cli("down")


# --- the pages that we have ---------------------------------------------------------------------------------------


def cells(page: str) -> list[list[str]]:
    """The rows of the page's table: the old line, and its new ones."""
    rows = [row for row in page.splitlines() if row.startswith("| `")]
    return [[cell.strip().strip("`") for cell in row.strip("|").split(" | ")] for row in rows]


@pytest.mark.parametrize("name", PAGES)
def test_each_new_line_of_the_page_works(desk: Desk, name: str) -> None:
    """The page is carried out from top to bottom, its table row by row, in a fresh yard."""
    page = (ROOT / "docs" / "howto" / name).read_text(encoding="utf-8")
    script = (ROOT / "examples" / "old_scripts" / PAGES[name]).read_text(encoding="utf-8")
    assert f"\n{script}```\n" in page, "the page shows the script as it is"
    desk.script(PAGES[name], script)
    lines = [line for row in cells(page) for line in row[1:] if line]
    lines += re.findall(r"^\$ (.+)$", page, re.MULTILINE)
    assert len(lines) > 30
    desk.yard.env["PATH"] = f"{Path(sys.executable).parent}:{desk.yard.env['PATH']}"
    for line in lines:
        done = subprocess.run(
            line, shell=True, cwd=desk.work, env=desk.yard.env, capture_output=True, text=True, timeout=180, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def test_each_old_line_stands_beside_its_new_one() -> None:
    for name in PAGES:
        for old, new, *_ in cells((ROOT / "docs" / "howto" / name).read_text(encoding="utf-8")):
            assert new.replace("runyard ", "") == old or old.startswith(("sacct", "qacct"))
