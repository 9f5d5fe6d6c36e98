"""From a job to run specs: where it may run, and what each task gets."""

from __future__ import annotations

from typing import Any

import pytest

from runyard import errors
from runyard.bridges.scripts import translate
from runyard.bridges.scripts.exports import Carried
from runyard.bridges.scripts.job import Here, ScriptJob
from runyard.model.spec import RunSpec
from tests.unit.bridges.test_jobs_described import gridengine_job, notices, slurm_job

LOCAL = {"name": "local", "kind": "local"}
CEDAR = {"name": "cedar", "kind": "slurm"}
BIRCH = {"name": "birch", "kind": "slurm"}
MSC = {"name": "msc", "kind": "gridengine"}


def specs(
    job: ScriptJob, *sites: dict[str, str], after: list[dict[str, list[int]]] | None = None
) -> list[dict[str, Any]]:
    translate.place(job, sites or [LOCAL])
    tasks = len(job.tasks.indexes) if job.tasks else 1
    made = translate.make_specs(job, after or [{}] * tasks, "host", "/home/ann")
    for spec in made:
        RunSpec.parse(spec)
    return made


def test_a_plain_job(here: Here) -> None:
    job = slurm_job(here, "-c", "2", "-n", "2", "--mem=1G", "--time=10", "--gpus=a100:1", "--requeue")
    [spec] = specs(job)
    assert spec["resources"] == {"cpus": 4, "memory": 1 << 30, "time": 600, "gpus": 1, "gpu_type": "a100"}
    assert (spec["script"], spec["command"], spec["cwd"]) == ("#!/bin/sh\necho\n", [], here.directory)
    assert (spec["dialect"], spec["retry"], spec["stdout"]) == (
        "slurm", {"max": 1}, f"{here.directory}/slurm-%j.out",
    )  # fmt: skip
    assert not {"open_mode", "array", "site", "options", "stderr"} & set(spec)
    assert spec["env"]["SLURM_CPUS_PER_TASK"] == "2"
    assert spec["env"]["SLURM_NTASKS"] == "2"


def test_an_array_has_a_spec_for_each_task(here: Here) -> None:
    made = specs(slurm_job(here, "--array=3,5%1"), after=[{"after": [1]}, {"after_any": [2]}])
    assert [spec["array"]["index"] for spec in made] == [3, 5]
    assert [spec["stdout"].rpartition("/")[2] for spec in made] == ["slurm-%A_3.out", "slurm-%A_5.out"]
    assert (made[0]["after"], made[1]["after_any"]) == ([1], [2])


@pytest.mark.parametrize(
    ("words", "mode"),
    [
        (["--array=1-2", "-o", "x.txt"], "append"),
        (["--array=1-2", "-o", "%A.txt"], "append"),
        (["--array=1-2", "-o", "%a.txt"], None),
        (["--array=1-2", "-o", "%j.txt"], None),
        (["--array=1-2", "-o", "%a.txt", "-e", "x.txt"], "append"),
        (["-o", "x.txt"], None),
        (["-o", "x.txt", "--open-mode=append"], "append"),
        (["-o", "%j.txt", "--open-mode=append"], None),
    ],
)
def test_which_files_of_slurm_are_shared(here: Here, words: list[str], mode: str | None) -> None:
    assert {spec.get("open_mode") for spec in specs(slurm_job(here, *words))} == {mode}


@pytest.mark.parametrize(
    ("words", "mode"),
    [
        ([], None),
        (["-t", "1-2"], None),
        (["-o", "x", "-j", "y"], "append"),
        (["-t", "1-2", "-o", "$JOB_ID", "-j", "y"], "append"),
        (["-o", "$JOB_ID", "-j", "y"], None),
    ],
)
def test_which_files_of_grid_engine_are_shared(here: Here, words: list[str], mode: str | None) -> None:
    assert {spec.get("open_mode") for spec in specs(gridengine_job(here, *words))} == {mode}


def test_no_file_at_all(here: Here) -> None:
    [spec] = specs(slurm_job(here, "-o", "/dev/null"))
    assert "stdout" not in spec
    [spec] = specs(slurm_job(here, "-o", "/dev/null", "-e", "/dev/null"))
    assert not {"stdout", "stderr"} & set(spec)
    [spec] = specs(slurm_job(here, "-o", "/dev/null", "-e", "%j.err"))
    assert spec["stdout"] == "/dev/null"


def test_a_job_that_is_no_array_has_the_task_that_its_tool_writes(here: Here) -> None:
    assert specs(slurm_job(here, "-o", "/x.%a"))[0]["stdout"] == "/x.4294967294"
    assert specs(gridengine_job(here, "-o", "/x.$TASK_ID"))[0]["stdout"] == "/x.0"


# --- where ------------------------------------------------------------------------------------------------------


def test_a_queue_that_no_site_has_maps_to_what_there_is(here: Here) -> None:
    job = gridengine_job(here, "-q", "cpu")
    [spec] = specs(job)
    assert "this yard has no queue 'cpu': the job goes to any site with room" in notices(job)
    assert spec["env"]["QUEUE"] == "cpu"
    named = slurm_job(here, "-p", "xeon", "--site", "local")
    assert specs(named)[0]["site"] == "local"
    assert "this yard has no partition 'xeon': the job goes to the site 'local'" in notices(named)


def test_a_queue_with_a_sites_name_is_that_site(here: Here) -> None:
    job = slurm_job(here, "-p", "local")
    assert specs(job, LOCAL, CEDAR)[0]["site"] == "local"
    assert job.notices == []


def test_words_for_slurm_go_to_slurm(here: Here) -> None:
    job = slurm_job(here, "-p", "gpu", "-A", "def-lab", "-n", "4", "-c", "2", "-N", "2")
    [spec] = specs(job, LOCAL, CEDAR)
    assert spec["site"] == "cedar"
    assert spec["options"] == {"partition": "gpu", "account": "def-lab", "ntasks": "4"}
    assert spec["resources"] == {"nodes": 2, "cpus": 2}, "cpus for each of its processes"
    assert job.notices == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--nice=7"], {"nice": "7"}),
        (["--nice"], {"nice": "100"}),
        (["--mem=0"], {"mem": "0"}),
        (["-P", "vision", "-p", "-5", "-pe", "mpi", "1"], {"pe": "mpi", "p": "-5", "P": "vision"}),
    ],
)
def test_what_means_something_everywhere_is_told_to_its_own_scheduler_too(
    here: Here, words: list[str], told: dict[str, str]
) -> None:
    job = slurm_job if words[0].startswith("--") else gridengine_job
    assert specs(job(here, *words), LOCAL, CEDAR, MSC)[0]["options"] == told
    elsewhere = job(here, *words)
    assert "options" not in specs(elsewhere, LOCAL)[0]
    assert elsewhere.notices == []


def test_elsewhere_they_are_told_as_useless(here: Here) -> None:
    job = slurm_job(here, "-A", "def-lab", "--exclusive")
    assert "options" not in specs(job, LOCAL, MSC)[0]
    assert "only Slurm itself can use --account, --exclusive" in notices(job)
    grid = gridengine_job(here, "-l", "arch=lx", "-m", "e")
    assert specs(grid, LOCAL, MSC)[0]["options"] == {"m": "e", "l": "arch=lx"}


@pytest.mark.parametrize(
    ("words", "sites", "sentence"),
    [
        (["--site", "ceder"], [LOCAL, CEDAR], "there is no site 'ceder'"),
        ([], [CEDAR, BIRCH], "several Slurm sites: cedar, birch"),
        (["-N", "3"], [LOCAL], "asks for 3 nodes, and there is no Slurm in this yard"),
        (["-N", "3", "--site", "local"], [LOCAL, CEDAR], "there is no Slurm at the site 'local'"),
    ],
)
def test_what_cannot_be_had_is_an_error(here: Here, words: list[str], sites: list[Any], sentence: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        specs(slurm_job(here, *words), *sites)
    assert sentence in caught.value.message


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("srun python train.py", "srun"),
        ("nodes=$(scontrol show hostnames $SLURM_JOB_NODELIST)", "scontrol"),
        ("  FOO=1 srun -n1 hostname &", "srun"),
        ("cd /x && srun ./a.out", "srun"),
        ("if true; then srun x; fi", "srun"),
        ("x=`srun hostname`", "srun"),
        ("# srun python train.py", None),
        ("echo srun", None),
        ("python train.py # srun", None),
        ("command -v srun || true", None),
        ("my_srun x", None),
    ],
)
def test_a_script_that_needs_slurm_is_refused_where_there_is_none(here: Here, line: str, program: str | None) -> None:
    text = f"#!/bin/bash\n{line}\n"
    assert translate.needed_program(text) == program
    if program:
        with pytest.raises(errors.Unsatisfiable, match=f"needs {program}, and there is no Slurm in this yard"):
            specs(slurm_job(here, text=text))
        assert specs(slurm_job(here, text=text), LOCAL, CEDAR)[0]["site"] == "cedar"


def test_python_that_speaks_of_srun_is_no_shell_script() -> None:
    assert translate.needed_program("#!/usr/bin/python3\nsrun = 1\n") is None


def test_variables_travel_by_what_they_are_for(here: Here) -> None:
    job = slurm_job(here)
    job.carried = Carried(env={"LR": "1"}, origin={"PATH": "/opt"})
    [spec] = specs(job)
    assert spec["origin"] == {"host": "host", "env": {"HOME": "/home/ann", "PATH": "/opt"}}
    assert spec["env"] == {"LR": "1", **job.variables}
