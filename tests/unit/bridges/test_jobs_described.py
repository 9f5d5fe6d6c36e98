"""What a script and its flags describe, by each tool's own rules."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runyard import errors
from runyard.bridges.scripts import flags, qsub, sbatch, script
from runyard.bridges.scripts.gridengine import QSUB
from runyard.bridges.scripts.job import Here, ScriptJob
from runyard.bridges.scripts.script import Script
from runyard.bridges.scripts.slurm import SBATCH

MB = 1 << 20


def slurm_job(here: Here, *words: str, text: str = "#!/bin/sh\necho\n", name: str = "train.sh") -> ScriptJob:
    given = flags.parse([*words, *([] if "--wrap" in words else [name])], SBATCH)
    source = sbatch.load(given, b"") if "wrap" in given else Script(name=name, text=text)
    return sbatch.read(sbatch.all_flags(given, source), source, here)


def gridengine_job(here: Here, *words: str, text: str = "#!/bin/sh\necho\n", name: str = "train.sh") -> ScriptJob:
    source = Script(name=name, text=text)
    return qsub.read(qsub.all_flags(flags.parse([*words, name], QSUB), source), source, here)


def notices(job: ScriptJob) -> str:
    return "\n".join(f"{notice.text} | {notice.fix}" for notice in job.notices)


# --- Slurm ------------------------------------------------------------------------------------------------------


def test_defaults_of_sbatch(here: Here) -> None:
    job = slurm_job(here)
    assert (job.name, job.cwd, job.command, job.tasks) == ("train.sh", here.directory, [], None)
    assert (job.stdout, job.stderr) == (f"{here.directory}/slurm-%j.out", None)
    assert (job.cpus, job.memory, job.gpus, job.time, job.append) == (1, None, 0, None, False)
    assert job.variables == {"SLURM_SUBMIT_DIR": here.directory, "SLURM_SUBMIT_HOST": "login1"}


def test_flags_in_the_script_and_on_the_command_line(here: Here) -> None:
    text = "#!/bin/sh\n#SBATCH --job-name=one --time=2:00:00 --array=1-8%2\n#SBATCH -p gpu\n"
    job = slurm_job(here, "-J", "two", "--chdir=sub", text=text)
    assert (job.name, job.time, job.queue, job.cwd) == ("two", 7200, "gpu", f"{here.directory}/sub")
    assert job.tasks is not None and job.tasks.limit == 2
    assert job.stdout == f"{here.directory}/sub/slurm-%A_%a.out"


@pytest.mark.parametrize(
    ("words", "cpus", "processes"),
    [
        (["-c", "4"], 4, 1), (["-n", "3"], 1, 3), (["-n3", "-c4"], 4, 3), (["--tasks-per-node=4"], 1, 4),
        (["--ntasks-per-node=4", "--ntasks=1"], 1, 1), (["-N1-2"], 1, 1), (["--gpus=2", "--cpus-per-gpu=4"], 8, 1),
        (["--gpus=3", "--cpus-per-gpu=3", "-n2"], 5, 2), (["-c2", "--cpus-per-gpu=4", "--gpus=1"], 2, 1),
        (["--cpus-per-gpu=4"], 1, 1),
    ],
)  # fmt: skip
def test_cores_and_processes(here: Here, words: list[str], cpus: int, processes: int) -> None:
    job = slurm_job(here, *words)
    assert (job.cpus, job.processes) == (cpus, processes)


@pytest.mark.parametrize(
    ("words", "processes", "memory", "gpus"),
    [
        (["-N2", "--mem=4G", "--gres=gpu:2"], 2, 4 << 30, 2),
        (["-N2", "-n8", "-c2", "--mem-per-cpu=1G", "--gpus=4"], 8, 8 << 30, 2),
        (["-N2", "-n3", "--mem-per-cpu=1G", "--gpus-per-node=2"], 3, 2 << 30, 2),
        (["-N2", "--ntasks-per-node=4", "--gpus-per-task=1"], 8, None, 4),
    ],
)
def test_of_several_nodes_each_has_its_share(
    here: Here, words: list[str], processes: int, memory: int | None, gpus: int
) -> None:
    job = slurm_job(here, *words)
    assert (job.nodes, job.processes, job.memory, job.gpus) == (2, processes, memory, gpus)


def test_gpus_that_nodes_cannot_have_alike(here: Here) -> None:
    with pytest.raises(errors.InvalidInput, match="2 nodes cannot have 3 GPUs alike"):
        slurm_job(here, "-N2", "--gpus=3")


@pytest.mark.parametrize(
    ("words", "megabytes"),
    [
        (["--mem=4G"], 4096), (["--mem=512"], 512), (["--mem=0"], None), (["--mem-per-cpu=100", "-c4", "-n2"], 800),
        (["--mem-per-gpu=1G", "--gpus=2"], 2048), (["--mem=65536K"], 64),
    ],
)  # fmt: skip
def test_memory(here: Here, words: list[str], megabytes: int | None) -> None:
    memory = slurm_job(here, *words).memory
    assert memory == (megabytes * MB if megabytes else None)


def test_a_crumb_of_memory_is_rounded_up_as_slurm_does(here: Here) -> None:
    job = slurm_job(here, "--mem=1024K")
    assert job.memory == 30 * MB
    assert "1.0 MB of memory is less than any program needs" in notices(job)


@pytest.mark.parametrize(
    ("words", "gpus", "kind"),
    [
        (["--gres=gpu:1"], 1, None), (["--gres=gpu"], 1, None), (["--gres=gpu:v100l:2"], 2, "v100l"),
        (["--gpus=a100:3"], 3, "a100"), (["-G2"], 2, None), (["--gpus-per-task=1", "-n2"], 2, None),
        (["--gres=none"], 0, None), (["--gres=gpu:2080ti:1"], 1, "2080ti"), (["--gpus=1g.5gb:2"], 2, "1g.5gb"),
    ],
)  # fmt: skip
def test_gpus(here: Here, words: list[str], gpus: int, kind: str | None) -> None:
    job = slurm_job(here, *words)
    assert (job.gpus, job.gpu_type) == (gpus, kind)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--gres=lscratch:10"], "--gres=lscratch:10 is not supported"),
        (["--gpus=many"], "--gpus: 'many'"),
        (["--cpus-per-task=0"], "--cpus-per-task: '0'"),
        (["--ntasks=x"], "--ntasks: 'x'"),
        (["--nodes=x"], "--nodes: 'x'"),
        (["--time=abc"], "--time: 'abc'"),
        (["--mem=lots"], "--mem: 'lots'"),
        (["--signal=KILL@3"], "--signal: 'KILL@3' is not supported"),
        (["--nice=x"], "--nice: 'x'"),
        (["--open-mode=add"], "--open-mode: 'add'"),
        (["--array=5-3"], "--array: '5-3'"),
        (["--dependency=after:1"], "--dependency: 'after' is not supported"),
    ],
)
def test_a_value_that_makes_no_sense_is_named(here: Here, words: list[str], sentence: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        slurm_job(here, *words)
    assert sentence in caught.value.message


def test_files_are_named_from_the_working_directory(here: Here) -> None:
    job = slurm_job(here, "-o", "./logs/%x-%j.out", "-e", "/tmp/e.%a", "-J", "a b")
    assert (job.stdout, job.stderr) == (f"{here.directory}/logs/a b-%j.out", "/tmp/e.%a")


def test_a_name_may_be_a_path(here: Here) -> None:
    assert slurm_job(here, "--job-name=/home/carta/test").name == "/home/carta/test"


def test_the_end_and_the_order_of_things(here: Here) -> None:
    job = slurm_job(here, "--signal=B:USR1@90", "--nice=7", "--requeue", "--open-mode=append")
    assert (job.stop, job.priority, job.retry, job.append) == ({"signal": "USR1", "grace": 90}, -7, 1, True)
    assert slurm_job(here, "--nice", "--requeue", "--no-requeue").priority == -100
    assert slurm_job(here, "--open-mode=a").append
    assert slurm_job(here, "--requeue", "--no-requeue").retry is None


def test_exports_of_sbatch(here: Here) -> None:
    script_text = "#!/bin/sh\necho $DATA\n"
    everything = slurm_job(here, text=script_text).carried
    assert everything.env == {"DATA": "/data"}
    assert everything.origin["PATH"] == "/opt/bin:/bin"
    named = slurm_job(here, "--export=A=1,SHELL,NOT_SET", text=script_text)
    assert (named.carried.env, named.carried.origin) == ({"A": "1", "SHELL": "/bin/zsh"}, {})
    assert "NOT_SET is not set here" in notices(named)
    assert slurm_job(here, "--export=NONE", text=script_text).carried.env == {}
    assert slurm_job(here, "--export=ALL,DATA=x", text=script_text).carried.env == {"DATA": "x"}


def test_variables_that_stand_for_flags_are_told(here: Here) -> None:
    environ = {**here.environ, "SBATCH_PARTITION": "gpu"}
    elsewhere = Here(directory=here.directory, home=here.home, user="ann", host="h", environ=environ)
    assert "SBATCH_PARTITION is not read | give it as a flag" in notices(slurm_job(elsewhere))


def test_a_wrapped_command(here: Here) -> None:
    job = slurm_job(here, "--wrap", "echo $SLURM_JOB_ID")
    assert job.name == "wrap"
    assert job.script is not None and job.script.startswith("#!/bin/sh\n") and "echo $SLURM_JOB_ID\n" in job.script
    with pytest.raises(errors.InvalidInput, match="not permitted with --wrap"):
        sbatch.load(flags.parse(["--wrap", "true", "x.sh"], SBATCH), b"")


@pytest.mark.parametrize(
    ("text", "fix"),
    [("echo hi\n", "begin it with a line like #!/bin/sh"), ("    #!/bin/sh\n    #SBATCH -n1\n", "remove the blanks")],
)
def test_sbatch_wants_an_interpreter_in_the_first_line(here: Here, text: str, fix: str) -> None:
    with pytest.raises(errors.InvalidInput, match="does not look like a batch script") as caught:
        slurm_job(here, text=text)
    assert fix in caught.value.fix


# --- Grid Engine ------------------------------------------------------------------------------------------------


def test_defaults_of_qsub(here: Here) -> None:
    job = gridengine_job(here)
    assert (job.name, job.cwd) == ("train.sh", here.home)
    assert (job.stdout, job.stderr) == (f"{here.home}/train.sh.o%A", f"{here.home}/train.sh.e%A")
    assert (job.carried.env, job.carried.origin) == ({}, {})
    assert job.variables["SGE_O_WORKDIR"] == here.directory


def test_an_array_of_grid_engine_in_this_directory(here: Here) -> None:
    job = gridengine_job(here, "-cwd", "-t", "2-6:2", "-tc", "1", "-pe", "smp", "2", "-N", "sweep", "-j", "y")
    assert (job.stdout, job.stderr, job.cwd) == (f"{here.directory}/sweep.o%A.%a", None, here.directory)
    assert job.tasks is not None
    assert (job.tasks.indexes, job.tasks.limit, job.cpus, job.variables["PE"]) == ((2, 4, 6), 1, 2, "smp")
    unlimited = gridengine_job(here, "-t", "1-3", "-tc", "0", "-j", "Y")
    assert (unlimited.tasks.limit if unlimited.tasks else 0, unlimited.stderr) == (None, None)


def test_where_output_of_grid_engine_goes(here: Here) -> None:
    Path(here.directory, "logs").mkdir()
    job = gridengine_job(here, "-cwd", "-o", "logs", "-e", ":logs/$JOB_NAME.$JOB_ID.err")
    assert job.stdout == f"{here.directory}/logs/train.sh.o%A"
    assert job.stderr == f"{here.directory}/logs/train.sh.%A.err"
    assert gridengine_job(here, "-o", "new/").stdout == f"{here.home}/new/train.sh.o%A"
    assert gridengine_job(here, "-o", "$HOME/x.$TASK_ID").stdout == f"{here.home}/x.%a"
    with pytest.raises(errors.InvalidInput, match="for the host 'node1' alone"):
        gridengine_job(here, "-o", "node1:/x")


def test_resources_of_grid_engine(here: Here) -> None:
    job = gridengine_job(here, "-pe", "smp", "4", "-l", "h_rt=1:00:00,h_vmem=2G", "-l", "gpu=1,arch=lx-amd64")
    assert (job.cpus, job.memory, job.time, job.gpus) == (4, 8 << 30, 3600, 1), "memory is for each slot"
    assert job.native == {"l": "arch=lx-amd64"}
    assert gridengine_job(here, "-pe", "mpi", "2-8").cpus == 2


def test_a_soft_limit_of_grid_engine_warns_of_the_hard_one(here: Here) -> None:
    job = gridengine_job(here, "-l", "s_rt=0:55:00,arch=lx", "-l", "h_rt=1:00:00")
    assert (job.time, job.stop, job.native) == (3600, {"signal": "USR1", "grace": 300}, {"l": "arch=lx"})
    for words in (["-l", "s_rt=60"], ["-l", "s_rt=60,h_rt=60"]):
        alone = gridengine_job(here, *words)
        assert (alone.stop, alone.native) == (None, {})
        assert "-l s_rt: it warns of no limit" in notices(alone)


def test_variables_of_qsub(here: Here) -> None:
    job = gridengine_job(here, "-v", "A=1,B=x=y,DATA", "-v", "C=")
    assert job.carried.env == {"A": "1", "B": "x=y", "DATA": "/data", "C": ""}
    assert "PATH" in gridengine_job(here, "-V").carried.origin


def test_a_dollar_in_a_value_stays_and_is_told(here: Here) -> None:
    job = gridengine_job(here, "-v", "MLP_DATA_DIR=/disk/scratch/mlp/data,OUTPUT_DIR=$HOME/experiments")
    assert job.carried.env["OUTPUT_DIR"] == "$HOME/experiments"
    assert 'use double quotes: -v OUTPUT_DIR="$HOME/experiments"' in notices(job)


def test_quotes_in_a_value_swallow_the_rest_and_are_told(here: Here) -> None:
    job = gridengine_job(here, "-v", 'A=0,FOO="a,b",BAR=c')
    assert job.carried.env == {"A": "0", "FOO": '"a,b",BAR=c'}
    assert "the quotes belong to the value of FOO" in notices(job)


def test_the_life_of_a_grid_engine_job(here: Here) -> None:
    job = gridengine_job(here, "-hold_jid", "1,train", "-hold_jid_ad", "2", "-p", "-5", "-P", "digits", "-r", "y")
    assert [(str(item.job), item.each) for item in job.dependencies] == [("1", False), ("train", False), ("2", True)]
    assert (job.priority, job.project, job.retry) == (-5, "digits", 1)


def test_an_interpreter_by_hand(here: Here) -> None:
    assert gridengine_job(here, "-S", "/bin/bash", text="#!/bin/sh\nx\n").script == "#!/bin/bash\nx\n"
    assert gridengine_job(here, "-S", "/bin/bash", text="x\n").script == "#!/bin/bash\nx\n"


def test_a_command_instead_of_a_script(here: Here) -> None:
    given = flags.parse(["-cwd", "-b", "y", "/bin/echo", "-n", "x"], QSUB)
    assert qsub.load(given, b"") is None
    job = qsub.read(given, None, here)
    assert (job.name, job.script, job.command) == ("echo", None, "/bin/echo -n x")
    assert job.notices == []


def test_a_command_goes_through_a_shell_as_in_grid_engine(here: Here) -> None:
    words = ["-b", "y", "echo", "a  b", "$HOME"]
    job = qsub.read(flags.parse(words, QSUB), None, here)
    assert job.command == "echo a  b $HOME"
    assert "without their quotes: echo a  b $HOME | forbid it with -shell n" in notices(job)
    named = qsub.read(flags.parse(["-S", "/bin/bash", *words], QSUB), None, here)
    assert named.command == ["/bin/bash", "-c", "echo a  b $HOME"]
    direct = qsub.read(flags.parse(["-shell", "n", *words], QSUB), None, here)
    assert (direct.command, direct.notices) == (["echo", "a  b", "$HOME"], [])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-N", "a/b"], "the name must not contain /"),
        (["-N", "a:b"], "the name must not contain :"),
        (["-N", "1abc"], "'1abc' cannot start with a digit"),
        (["-t", "0-3"], "-t: 0 is no task"),
        (["-tc", "2"], "-tc: '2' is no number of tasks of an array"),
        (["-p", "2000"], "-p: '2000'"),
        (["-j", "maybe"], "-j: 'maybe' is neither y nor n"),
        (["-pe", "smp", "x"], "-pe: 'x' is no number of slots"),
        (["-l", "h_rt=soon"], "-l h_rt: 'soon'"),
        (["-l", "gpu=x"], "-l gpu=x"),
        (["-P", "a/b"], "-P: 'a/b'"),
    ],
)
def test_a_value_that_grid_engine_would_refuse(here: Here, words: list[str], sentence: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        gridengine_job(here, *words)
    assert sentence in caught.value.message


# --- scripts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "interpreter", "is_shell"),
    [
        ("#!/bin/bash -e", "/bin/bash", True), ("#! /bin/sh", "/bin/sh", True), ("echo", "/bin/sh", True),
        ("#!/usr/bin/env -S python3 -u", "python3", False), ("#!/usr/bin/env bash", "bash", True),
        ("#!/disk/scratch/mlp/miniconda2/bin/python", "/disk/scratch/mlp/miniconda2/bin/python", False),
    ],
)  # fmt: skip
def test_who_interprets_a_script(first: str, interpreter: str, is_shell: bool) -> None:
    source = Script(name="x", text=f"{first}\n")
    assert (source.interpreter, source.is_shell) == (interpreter, is_shell)


def test_scripts_that_nothing_can_be_done_with(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidInput, match="is a directory"):
        script.load(str(tmp_path))
    with pytest.raises(errors.InvalidInput, match=r"unable to open .*: no such file"):
        script.load(str(tmp_path / "nosuch.sh"))
    with pytest.raises(errors.InvalidInput, match="is empty"):
        script.made("x.sh", b" \n")
    with pytest.raises(errors.InvalidInput, match="DOS line breaks") as caught:
        script.made("x.sh", b"#!/bin/sh\r\necho\r\n")
    assert "sed -i" in caught.value.fix
    with pytest.raises(errors.InvalidInput, match="no script but a program"):
        script.made("true", b"\x7fELF\0\0")


def test_any_bytes_are_kept(tmp_path: Path) -> None:
    (tmp_path / "x.sh").write_bytes(b"#!/bin/sh\necho \xff\n")
    assert os.fsencode(script.load(str(tmp_path / "x.sh")).text) == b"#!/bin/sh\necho \xff\n"
