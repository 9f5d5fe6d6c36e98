"""What a node executes for a job of a Ludwig project, with the interpreters that nodes may have."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runyard.bridges.ludwig import values
from runyard.bridges.ludwig.node import worker
from tests.acceptance.witness import until
from tests.labs import components
from tests.labs.pythons import OTHER_PYTHONS

INTERPRETERS = [sys.executable, *OTHER_PYTHONS]

RUN = """
import pickle, socket, sys
from mine.work import check
with open(sys.argv[0].replace("run.py", "") + "drive/digits/%s_param2val_chunk.pkl" % socket.gethostname(), "rb") as f:
    (param2val,) = pickle.load(f)
check(param2val)
print(sorted(param2val.items()))
"""


class Node:
    """A drive and a copy of a project, as a run finds them."""

    def __init__(self, place: Path) -> None:
        self.place, self.drive = place, place / "drive" / "digits"
        self.drive.mkdir(parents=True)
        (place / "lib" / "mine").mkdir(parents=True)
        (place / "outputs").mkdir()

    def start(self, python: str = sys.executable, **job: Any) -> subprocess.Popen[str]:
        param2val = {"rate": 0.1, "layers": (8, 4), "param_name": "param_001", "job_name": "x_num0"}
        told = {"project_path": str(self.drive), "param2val": values.encode(param2val), "import_from": [".", "lib"],
                "program": None, "source": None, "workers": [], **job}  # fmt: skip
        env = {**os.environ, "LUDWIG_JOB": json.dumps(told), "OUTPUT_DIR": str(self.place / "outputs"),
               "RUNYARD_RUN_ID": "7", "RUNYARD_ATTEMPT": "2", "PYTHONUNBUFFERED": "1"}  # fmt: skip
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [python, worker.__file__], cwd=self.place, env=env, stdout=pipe, stderr=pipe, text=True,
            start_new_session=True,
        )  # fmt: skip

    def write(self, name: str, text: str) -> None:
        (self.place / name).write_text(text)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.mark.parametrize("python", INTERPRETERS)
def test_a_run_py_finds_its_configuration_and_what_it_imports(node: Node, python: str) -> None:
    node.write("run.py", RUN)
    node.write("lib/mine/work.py", "def check(param2val): assert param2val['layers'] == (8, 4)")
    path = python if os.sep in python else str(components.python(python))
    process = node.start(path, program="run.py", workers=["hoff"])
    said, complained = process.communicate(timeout=180)
    assert process.returncode == 0, complained
    assert said == "[('job_name', 'x_num0'), ('layers', (8, 4)), ('param_name', 'param_001'), ('rate', 0.1)]\n"
    assert os.listdir(node.drive) == [], "the file is gone with its reader"


def test_the_exit_of_a_run_py_is_the_jobs(node: Node) -> None:
    for text, code in (("import sys; sys.exit(3)", 3), ("import os; os.kill(os.getpid(), 9)", 137)):
        node.write("run.py", text)
        process = node.start(program="run.py")
        process.communicate(timeout=180)
        assert process.returncode == code
        assert os.listdir(node.drive) == []


def test_one_run_py_at_a_time_on_a_host_however_the_first_ends(node: Node) -> None:
    node.write("run.py", "import time; open('began', 'a').write('x'); time.sleep(600)")
    first = node.start(program="run.py")
    until((node.place / "began").exists, what="the first began")
    second = node.start(program="run.py", param2val=values.encode({"second": 1}))
    assert second.stdout is not None
    assert second.stdout.readline() == f"waiting for another run.py of this project on {socket.gethostname()}\n"
    chunk = node.drive / f"{socket.gethostname()}_param2val_chunk.pkl"
    assert b"second" not in chunk.read_bytes()
    first.kill()
    assert b"second" not in chunk.read_bytes(), "its run.py goes on"
    _end(first)
    until(lambda: chunk.exists() and b"second" in chunk.read_bytes(), what="the second's own file")
    _end(second)


def _end(process: subprocess.Popen[str]) -> None:
    """It and its run.py, as a runner does."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=180)


def test_a_node_without_the_drive_says_so_before_anything_is_computed(node: Node) -> None:
    process = node.start(project_path="/no/such/drive/digits", program="run.py")
    said, _ = process.communicate(timeout=180)
    assert process.returncode == 1
    assert said == f"runyard: {socket.gethostname()} has no /no/such/drive/digits; mount the shared drive there\n"


def test_results_appear_whole_and_replace_those_of_an_earlier_try(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(node.place)
    monkeypatch.setenv("RUNYARD_ATTEMPT", "2")
    place = node.drive / "runs" / "param_001" / "x_num0"
    (node.drive / ".incoming").touch()  # what a yard uses that mirrors to the drive, where nodes may not write
    for stale in (place, node.drive / worker.INCOMING / "param_001-x_num0-a1"):
        stale.mkdir(parents=True)
        (stale / "old.csv").touch()
    (node.place / "saves" / "deep").mkdir(parents=True)
    node.write("saves/deep/weights", "1")
    node.write("outputs/score.csv", ",score\n0,1\n")
    param2val = {"param_name": "param_001", "job_name": "x_num0", "save_path": "saves"}
    worker.publish(str(node.drive), param2val, [str(node.place / "outputs" / "score.csv")])
    assert sorted(str(path.relative_to(place)) for path in place.rglob("*")) == [
        "saves", "saves/deep", "saves/deep/weights", "score.csv",
    ]  # fmt: skip
    assert os.listdir(node.drive / worker.INCOMING) == []


@pytest.mark.parametrize(
    ("returned", "complaint"),
    [
        ("pd.Series([1.0], name='score')", "TypeError: job.main must return a list of pandas.Series"),
        ("[pd.Series([1.0])]", "AttributeError: a series that job.main returned has no name"),
        ("None", ""),
    ],
)
def test_what_a_job_may_return(node: Node, returned: str, complaint: str) -> None:
    node.write("lib/mine/job.py", f"import pandas as pd\n\ndef main(param2val):\n    return {returned}\n")
    names = {"param_name": "param_001", "job_name": "x_num0", "save_path": "saves"}
    process = node.start(source="mine", param2val=values.encode(names))
    said, complained = process.communicate(timeout=180)
    assert process.returncode == bool(complaint) and complaint in complained
    assert (node.drive / "runs" / "param_001" / "x_num0").is_dir() == ("WARNING: Job did not return" in said)
