"""Every slip that is known is found, and told with its fix; what is right is let be."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.bridges.scripts import mistakes
from runyard.bridges.scripts.job import Here, Notice, ScriptJob
from runyard.bridges.scripts.script import Script
from tests.unit.bridges.test_jobs_described import gridengine_job, slurm_job


def told(notices: list[Notice]) -> str:
    return "\n".join(f"{notice.text} | {notice.fix}" for notice in notices)


def in_shell(here: Here, text: str) -> str:
    return told(mistakes.in_script(Script(name="x.sh", text=f"#!/bin/bash\n{text}\n"), here))


def in_job(here: Here, job: ScriptJob) -> str:
    return told(mistakes.in_job(job, here))


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
    job = in_job(here, slurm_job(here, text=f"#!/bin/bash\n{text}"))
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
    said = told(mistakes.in_script(Script(name="x.py", text=text), here))
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


MULTINODE = """#SBATCH --nodes=3
redis_password=$(uuidgen)
export redis_password
srun --nodes=1 -w $node1 ch-run --set-env antonio.ray -- ray start --block --head \\
    --port=$port --redis-password=$redis_password &
sleep 5
for ((i=1; i<=worker_num; i++)); do
  srun -w ${nodes[$i]} ch-run --set-env antonio.ray -- ray start --block --address=$ip_head &
  sleep 5
done
python $PY_MAIN
"""


def test_a_head_of_ray_that_is_waited_for_by_the_clock(here: Here) -> None:
    said = in_shell(here, MULTINODE)
    for line in (7, 10):
        assert f"line {line} of the script: a sleep does not tell whether Ray is up by then" in said
    assert said.count("until ray status --address=$ip_head; do sleep 1; done") == 2
    asked = MULTINODE.replace("sleep 5", "until ray status --address=$ip_head\ndo\n  sleep 1\ndone")
    assert "a sleep" not in in_shell(here, asked)
    assert "a sleep" not in in_shell(here, "sleep 5\npython train.py\nsleep 5"), "there is no Ray"


def test_a_password_on_the_command_line(here: Here) -> None:
    said = in_shell(here, MULTINODE)
    assert "line 6 of the script: everybody on the node reads the password in the list of processes" in said
    assert "RAY_AUTH_MODE=token" in said
    assert "password" not in in_shell(here, MULTINODE.replace("--redis-password=$redis_password", ""))
    old = (
        "#!/usr/bin/python3\nray.init(address=os.environ['ip_head'],\n  redis_password=os.environ['redis_password'])\n"
    )
    said = told(mistakes.in_script(Script(name="x.py", text=old), here))
    assert said == "line 3 of the script: ray.init of current versions has no redis_password any more | leave it out"
    current = Script(name="x.py", text=old.replace("redis_password=", "_redis_password="))
    assert mistakes.in_script(current, here) == []


MNIST = """#!/disk/scratch/mlp/miniconda2/bin/python
import os
import numpy as np
assert 'OUTPUT_DIR' in os.environ, 'OUTPUT_DIR must be set'
with session() as sess:
    for epoch in range(5):
        errors[epoch] = train(sess)
np.savez_compressed(
    os.path.join(os.environ['OUTPUT_DIR'], 'run.npz'), errors=errors)
"""


def test_results_that_are_saved_only_at_the_end(here: Here) -> None:
    lost = "line 8 of the script: what is saved only at the end is lost when the run is ended before"
    said = told(mistakes.in_script(Script(name="train.py", text=MNIST), here))
    assert lost in said
    assert "save it in each round of the loop" in said
    of_old = Script(name="train.py", text=MNIST.replace("import os\n", "pattern = '\\d'\n"))
    assert lost in told(mistakes.in_script(of_old, here)), "what Python warns of is not ours to tell"
    for right in (
        MNIST.replace("train(sess)", "train(sess); np.savez('run.npz', errors=errors)"),
        MNIST.replace("import os\n", "import os, signal\nsignal.signal(signal.SIGTERM, save)\n"),
        MNIST.replace("    for epoch in range(5):\n    ", ""),
        MNIST.replace("assert ", "def save():\n    np.savez('run.npz', errors=errors)\nassert "),
        MNIST.replace("import os\n", "print 'Python 2'\n"),
    ):
        assert "lost" not in told(mistakes.in_script(Script(name="train.py", text=right), here))


def test_a_wrapper_that_never_says_where_results_go(here: Here) -> None:
    """As in the note of the teaching cluster; the program is in the home, where the job begins."""
    Path(here.home, "train.py").write_text(MNIST)
    wrapper = "#!/bin/sh\nexport MLP_DATA_DIR=/data\npython $HOME/train.py\n"
    told_of = "train.py wants OUTPUT_DIR, and nothing sets it: here it is the run's own directory for results"
    assert told_of in in_job(here, gridengine_job(here, text=wrapper))
    assert told_of in in_job(here, gridengine_job(here, text=wrapper.replace("$HOME/", "")))
    assert "the script wants OUTPUT_DIR" in in_job(here, gridengine_job(here, text=MNIST, name="train.py"))
    for right in (
        gridengine_job(here, "-v", "OUTPUT_DIR=/results", text=wrapper),
        gridengine_job(here, text=wrapper.replace("export", "export OUTPUT_DIR=/results")),
        gridengine_job(here, text=wrapper.replace("train.py", "other.py")),
    ):
        assert "OUTPUT_DIR" not in in_job(here, right)


def test_a_first_line_that_not_every_queue_heeds(here: Here) -> None:
    said = told(gridengine_job(here, text=MNIST, name="train.py").notices)
    assert "a queue without shell_start_mode unix_behavior has a shell read the script" in said
    assert "#$ -S /disk/scratch/mlp/miniconda2/bin/python" in said
    looked_up = MNIST.replace("/disk/scratch/mlp/miniconda2/bin/python", "/usr/bin/env python3")
    assert "#$ -S /PATH/TO/python3" in told(gridengine_job(here, text=looked_up).notices)
    for right in (
        gridengine_job(here, "-S", "/usr/bin/python3", text=MNIST),
        gridengine_job(here, text=MNIST.replace("import os\n", "#$ -S /usr/bin/python3\n")),
        gridengine_job(here, text="#!/bin/bash\necho\n"),
    ):
        assert right.notices == []


def test_cp_of_a_directory(here: Here) -> None:
    Path(here.directory, "experiments").mkdir()
    assert "cp leaves out experiments, which is a directory | write cp -r" in in_shell(here, "cp experiments /tmp/x")
    for right in ("cp -r experiments /tmp/x", "cp -a experiments /tmp", "cp file /tmp/x"):
        assert in_shell(here, right) == ""


def test_output_into_a_directory_that_is_not_there(here: Here) -> None:
    assert f"mkdir -p {here.directory}/slurm_logs" in in_job(here, slurm_job(here, "--output=./slurm_logs/job%j.out"))
    Path(here.directory, "slurm_logs").mkdir()
    assert "mkdir" not in in_job(here, slurm_job(here, "--output=./slurm_logs/job%j.out"))


def test_tasks_of_grid_engine_that_share_a_file(here: Here) -> None:
    said = in_job(here, gridengine_job(here, "-t", "1-3", "-o", "all.txt", "-j", "y"))
    assert "all 3 tasks append their output to one file" in said
    assert "$JOB_ID.$TASK_ID" in said


def test_variables_that_stay_behind(here: Here) -> None:
    environ = {**here.environ, "API_KEY": "s3cret", "LR": "0.1"}
    elsewhere = Here(directory=here.directory, home=here.home, user="ann", host="h", environ=environ)
    said = in_job(here, slurm_job(elsewhere, text="#!/bin/sh\ncurl $API_KEY\n"))
    assert "the script wants API_KEY, which looks like a secret and stays behind" in said
    assert "--export=ALL,API_KEY" in said
    assert "LR" not in said, "nobody asks for it"
    assert "s3cret" not in said
    by_hand = slurm_job(elsewhere, "--export=ALL,API_KEY", text="#!/bin/sh\ncurl $API_KEY\n")
    assert (
        in_job(elsewhere, by_hand)
        == "the value of API_KEY is stored with the run; all users who may see the run can read it | "
    )


def test_variables_that_a_program_of_the_script_reads_and_that_stay_behind(here: Here) -> None:
    Path(here.directory, "train.py").write_text("import os\nlr = os.environ['LR']\n")
    environ = {**here.environ, "LR": "0.1", "EDITION": "3"}
    elsewhere = Here(directory=here.directory, home=here.home, user="ann", host="h", environ=environ)
    job = slurm_job(elsewhere, text="#!/bin/sh\npython train.py\n")
    assert (
        in_job(elsewhere, job) == "train.py reads LR, which the script does not name: it stays behind | --export=ALL,LR"
    )
    named = slurm_job(elsewhere, text="#!/bin/sh\nexport LR=$LR\npython train.py\n")
    assert in_job(elsewhere, named) == ""


def test_a_warning_that_comes_later_than_it_was_asked_for(here: Here) -> None:
    said = in_job(here, slurm_job(here, "--signal=B:USR1@600", "--time=30"))
    assert "USR1 comes 3m00s before the limit of 30m00s, not 10m00s" in said
    assert in_job(here, slurm_job(here, "--signal=B:USR1@180", "--time=30")) == ""


def test_a_script_without_slips(here: Here) -> None:
    text = "#SBATCH --time=1:00\n\nexport DATA=/data\ncat <<END\n--not an option\nEND\npython train.py \\\n  --lr 0.1"
    assert in_shell(here, text) == ""
    assert in_job(here, slurm_job(here, "--export=NONE")) == ""
