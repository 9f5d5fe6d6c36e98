"""Every slip that is known is found, and told with its fix; what is right is let be."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.bridges.scripts import slips
from runyard.bridges.scripts.job import Here, Job, Notice
from runyard.bridges.scripts.script import Script
from tests.unit.bridges.test_jobs_described import gridengine_job, slurm_job


def told(notices: list[Notice]) -> str:
    return "\n".join(f"{notice.text} | {notice.fix}" for notice in notices)


def in_shell(here: Here, text: str) -> str:
    return told(slips.in_script(Script(name="x.sh", text=f"#!/bin/bash\n{text}\n"), here))


def in_job(job: Job) -> str:
    return told(slips.in_job(job))


def test_the_script_of_the_cluster_page(here: Here) -> None:
    """As it stands there: no line goes on in the next, and the name is a path."""
    text = """#SBATCH --job-name=/home/carta/docker_repo/docker_latest/test
#SBATCH --output=test.txt
#SBATCH --array=1-8

ch-run --set-env=config.env
    --cd=/home/carta/docker_repo antonio.lmn
    /opt/conda/bin/python /home/carta/repo/main.py
    -- --id=$SLURM_ARRAY_TASK_ID
"""
    said = in_shell(here, text)
    assert "line 7 of the script: it begins with '--cd=/home/carta/docker_repo'" in said
    assert "line 9 of the script: it begins with '--'" in said
    assert "end the line before with \\" in said
    job = in_job(slurm_job(here, text=f"#!/bin/bash\n{text}"))
    assert "all 8 tasks append their output to one file" in job
    assert "%A_%a" in job
    assert "--job-name=test" in job


def test_the_same_script_with_its_lines_joined(here: Here) -> None:
    text = (
        "ch-run --set-env=config.env \\\n  --cd=/home/carta antonio.lmn \\\n"
        "  /opt/conda/bin/python main.py -- --id=$SLURM_ARRAY_TASK_ID"
    )
    said = in_shell(here, text)
    assert "begins with" not in said
    assert "ENV of the image | add --set-env without a value" in said
    assert "the -- is handed to the program | write ch-run [options] IMAGE -- COMMAND" in said
    assert in_shell(here, "ch-run --set-env --cd=/x img -- python main.py --id=1") == ""


def test_env_files_of_charliecloud(here: Here) -> None:
    Path(here.directory, "config.env").write_text('# mine\nPYTHONPATH=.:/home\nNAME="x"\nexport A=1\n')
    said = in_shell(here, "ch-run --set-env --set-env=config.env img -- python x.py")
    assert "config.env line 1: ch-run knows neither comments nor export" in said
    assert "config.env line 3: ch-run keeps the double quotes" in said
    assert "config.env line 4" in said
    assert "line 2" not in said


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ch-build -t a --network=host .", "no ch-build any more | write ch-image build"),
        ("ch-builder2tar a .", "no ch-builder2tar any more | write ch-convert"),
        ("ch-tar2dir ./a.tar.gz .", "no ch-tar2dir any more | write ch-convert"),
        ("ray start --head --redis-port=6379", "no --redis-port any more | write --port"),
        ("ray start --head --port=6379 --block", "two jobs on one node cannot both have port 6379"),
        ("ip=$(hostname --ip-address)", "may print several addresses | take the first"),
        ("out=runs/$(date +%Y-%m-%d_%H-%M-%S)", "share what is named by the second | add the id"),
        ("cp data /afs/inf.ed.ac.uk/user/s12/", "jobs do not see AFS"),
        ("# SBATCH --time=1:00", "is a comment to Slurm | write #SBATCH without a blank"),
        (
            "echo\n#SBATCH --time=1:00",
            "line 3 of the script: an #SBATCH line after the first command counts for nothing",
        ),
    ],
)
def test_words_that_are_known_to_go_wrong(here: Here, line: str, found: str) -> None:
    assert found in in_shell(here, line)


def test_python_scripts_have_slips_of_their_own(here: Here) -> None:
    text = "#!/usr/bin/python3\nip = ray.services.get_node_ip_address()\nd = strftime('%Y-%m-%d_%H-%M-%S')\nX=1\n"
    said = told(slips.in_script(Script(name="x.py", text=text), here))
    assert "ray.util.get_node_ip_address" in said
    assert "line 3 of the script: runs that begin in the same second" in said
    assert "exported" not in said


def test_a_variable_for_nobody(here: Here) -> None:
    wrapper = "MLP_DATA_DIR='/disk/scratch/mlp/data'\n/disk/scratch/mlp/miniconda2/bin/python train.py"
    said = in_shell(here, wrapper)
    assert said.startswith("line 2 of the script: MLP_DATA_DIR is set, but not exported: the programs that the script")
    assert "write export MLP_DATA_DIR='/disk/scratch/mlp/data'" in said
    for right in (
        f"export {wrapper}",
        f"{wrapper} $MLP_DATA_DIR",
        f"set -a\n{wrapper}",
        f"{wrapper}\nexport MLP_DATA_DIR",
    ):
        assert "not exported" not in in_shell(here, right)


def test_cp_of_a_directory(here: Here) -> None:
    Path(here.directory, "experiments").mkdir()
    assert "cp leaves out experiments, which is a directory | write cp -r" in in_shell(here, "cp experiments /tmp/x")
    for right in ("cp -r experiments /tmp/x", "cp -a experiments /tmp", "cp file /tmp/x"):
        assert in_shell(here, right) == ""


def test_output_into_a_directory_that_is_not_there(here: Here) -> None:
    assert f"mkdir -p {here.directory}/slurm_logs" in in_job(slurm_job(here, "--output=./slurm_logs/job%j.out"))
    Path(here.directory, "slurm_logs").mkdir()
    assert "mkdir" not in in_job(slurm_job(here, "--output=./slurm_logs/job%j.out"))


def test_tasks_of_grid_engine_that_share_a_file(here: Here) -> None:
    said = in_job(gridengine_job(here, "-t", "1-3", "-o", "all.txt", "-j", "y"))
    assert "all 3 tasks append their output to one file" in said
    assert "$JOB_ID.$TASK_ID" in said


def test_variables_that_stay_behind(here: Here) -> None:
    environ = {**here.environ, "API_KEY": "s3cret", "LR": "0.1"}
    elsewhere = Here(directory=here.directory, home=here.home, user="ann", host="h", environ=environ)
    said = in_job(slurm_job(elsewhere, text="#!/bin/sh\ncurl $API_KEY\n"))
    assert "the script wants API_KEY, which looks like a secret and stays behind" in said
    assert "--export=ALL,API_KEY" in said
    assert "variables that the script does not name stay behind: DATA, LR | --export=ALL,DATA" in said
    assert "s3cret" not in said
    by_hand = slurm_job(elsewhere, "--export=ALL,API_KEY,DATA,LR", text="#!/bin/sh\ncurl $API_KEY\n")
    assert in_job(by_hand) == "the value of API_KEY is stored with the run; whoever may see the run may read it | "


def test_a_script_without_slips(here: Here) -> None:
    text = "#SBATCH --time=1:00\n\nexport DATA=/data\ncat <<END\n--not an option\nEND\npython train.py \\\n  --lr 0.1"
    assert in_shell(here, text) == ""
    assert in_job(slurm_job(here, "--export=NONE")) == ""
