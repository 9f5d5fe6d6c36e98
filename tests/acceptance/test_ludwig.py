"""Projects for LudwigCluster, on three real nodes: their submits, their jobs, their folders on the shared drive."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance.ludwig_lab import LudwigLab, leftovers, read_csv
from tests.acceptance.witness import until
from tests.labs.components import TRAINER_PYTHON
from tests.labs.nodes import NodeLab
from tests.labs.yard import Yard

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "ludwig-style"
PAGE = ROOT / "docs" / "howto" / "from-ludwig.md"
NODES = {"hoff", "norman", "pitts"}

pytestmark = [pytest.mark.component("trainer"), pytest.mark.component("pytables")]

DEFAULTS: dict[str, Any] = {"size": 4, "rate": 0.1, "layers": (8, 4), "wait": 0.0, "fail": ""}

JOB = """
import socket, time
from pathlib import Path
import pandas as pd

def main(param2val):
    time.sleep(param2val["wait"])
    while (Path(param2val["project_path"]) / ("hold-" + socket.gethostname())).exists():
        time.sleep(0.1)
    if param2val["fail"]:
        raise RuntimeError(param2val["fail"])
    assert isinstance(param2val["layers"], tuple)
    assert Path("corpora/a.txt").read_text() == "words"
    (Path(param2val["save_path"]) / "host.txt").write_text(socket.gethostname())
    words = (Path(param2val["project_path"]) / "corpora" / "a.txt").read_text()
    return [pd.Series([param2val["rate"], len(words)], index=[1, 2], name="score"), pd.Series([0.5], name="other")]
"""

# As the seed era had it: it finds its configurations in a file named after the host, and moves its results itself.
RUN = """
import os, pickle, shutil, socket, time
from pathlib import Path
from mine.work import work

project = Path("{drive}") / "old"
hostname = socket.gethostname()
with (project / "{{}}_param2val_chunk.pkl".format(hostname)).open("rb") as f:
    param2val_chunk = pickle.load(f)
os.mkdir(str(project / (hostname + "-busy")))  # a second one beside it would fail
for param2val in param2val_chunk:
    result = Path("result.txt")
    result.write_text(work(param2val, project))
    place = project / "runs" / param2val["param_name"] / param2val["job_name"]
    place.mkdir(parents=True)
    shutil.move(str(result), str(place / "result.txt"))
os.rmdir(str(project / (hostname + "-busy")))
"""
WORK = """
def work(param2val, project):
    assert sorted(param2val) == ["job_name", "param_name", "rate", "size"], param2val
    return "{} {}".format(param2val["size"] * param2val["rate"], (project / "corpora" / "a.txt").read_text())
"""


@pytest.fixture
def lab(node_lab: Callable[..., NodeLab]) -> Iterator[LudwigLab]:
    made = LudwigLab(node_lab())
    try:
        yield made.start()
    finally:
        made.remove()


def params(run: dict[str, Any]) -> tuple[Any, ...]:
    return run["params"]["size"], run["params"]["rate"]


@pytest.mark.long
def test_twelve_configurations_twice_over_three_nodes_one_of_which_loses_power(lab: LudwigLab) -> None:
    lab.write({"mine/job.py": JOB, "mine/__init__.py": "", "corpora/a.txt": "words"})
    client = lab.client("digits", DEFAULTS)
    hold = lab.share / "digits" / "hold-hoff"  # jobs there do not end while it exists
    hold.parent.mkdir()
    hold.parent.chmod(0o777)
    hold.touch()
    options: dict[str, Any] = {"src_ps": [Path("mine")], "data_ps": [Path("corpora")]}
    requests: dict[str, Any] = {"size": [2, 3, 5], "rate": [0.1, 0.2, 0.3, 0.4]}
    runs = lab.submit(client, param2requests=requests, reps=2, **options)
    assert len(runs) == 24
    lab.write({"mine/job.py": "raise SystemExit('edited after the submit')"})
    until(lambda: _on(lab, "hoff"), what="a job on hoff", timeout=240)
    lost = _on(lab, "hoff")
    lab.nodes.power_off("hoff")
    hold.unlink()
    until(lambda: sum(lab.results("digits").values()) > 4, what="others go on", timeout=300)
    lab.nodes.power_on("hoff")
    shown = lab.succeeded(runs)
    assert {run["attempt"] for run in shown if run["id"] in lost} == {2}
    names = [f"param_{number:0>3}" for number in range(1, 13)]
    assert lab.results("digits") == dict.fromkeys(names, 2)
    assert not list(leftovers(lab.share / "digits"))
    _check_layout(lab.share / "digits" / "runs")

    lab.write({"mine/job.py": JOB})
    assert lab.submit(client, param2requests=requests, reps=2, **options) == []
    requests["rate"].append(0.5)
    more = lab.submit(client, param2requests=requests, reps=3, **options)
    wanted = [
        (size, rate) for rate in requests["rate"] for size in requests["size"] for _ in range(3 if rate == 0.5 else 1)
    ]
    assert sorted(map(params, lab.succeeded(more))) == sorted(wanted)
    assert set(lab.results("digits").values()) == {3} and len(lab.results("digits")) == 15
    labels = [label for _, label in client.gen_param_ps({"size": [2], "rate": [0.1]})]
    assert labels == ["rate=0.1\nsize=2\nn=3"]


def _on(lab: LudwigLab, node: str) -> list[int]:
    return [run.id for run in lab.yard.client().runs(state="running") if run.data["node"] == node]


def _check_layout(runs: Path) -> None:
    configuration = yaml.safe_load((runs / "param_002" / "param2val.yaml").read_text())
    assert configuration | {"project_path": ""} == {
        **DEFAULTS, "size": 3, "layers": [8, 4],
        "param_name": "param_002", "job_name": None, "project_path": "", "save_path": None,
    }  # fmt: skip
    assert configuration["project_path"] == str(runs.parent), "the first name is the fastest, and the folder is known"
    for job in runs.glob("param_002/*num*"):
        assert ":" not in job.name
        assert sorted(path.name for path in job.iterdir()) == ["other.csv", "saves", "score.csv"]
        assert read_csv(job / "score.csv") == [["", "score"], ["1", "0.1"], ["2", "5.0"]]
        assert (job / "saves" / "host.txt").read_text() in NODES


def test_the_same_with_a_run_py_of_the_seed_era(lab: LudwigLab) -> None:
    lab.write({"run.py": RUN.format(drive=lab.share), "mine/work.py": WORK, "corpora/a.txt": "words"})
    client = lab.client("old")
    grid = [{"size": size, "rate": rate} for size in (2, 3, 5) for rate in (0.1, 0.2, 0.3, 0.4)]
    options: dict[str, Any] = {"src_ps": [Path("mine")], "data_ps": [Path("corpora")]}
    runs = lab.submit(client, param2val_list=grid, reps=2, **options)
    shown = lab.succeeded(runs)
    assert {run["node"] for run in shown} == NODES and len(shown) == 24
    assert set(lab.results("old").values()) == {2} and len(lab.results("old")) == 12
    assert not list(leftovers(lab.share / "old"))
    (first, second) = (lab.share / "old" / "runs" / "param_001").glob("*/result.txt")
    assert first.read_text() == second.read_text() == "0.2 words"

    assert lab.submit(client, param2val_list=grid, reps=2, **options) == []
    grid.append({"size": 7, "rate": 1.0})
    more = lab.submit(client, param2val_list=grid, reps=3, worker="pitts", **options)
    shown = lab.succeeded(more)
    assert {run["node"] for run in shown} == {"pitts"}
    assert len(shown) == 12 + 3 and [params(run) for run in shown].count((7, 1.0)) == 3


def test_one_failing_job_leaves_the_others_alone_and_is_tried_again(lab: LudwigLab) -> None:
    lab.write({"mine/job.py": JOB, "corpora/a.txt": "words"})
    client = lab.client("digits", DEFAULTS)
    options: dict[str, Any] = {"src_ps": [Path("mine")], "data_ps": [Path("corpora")], "reps": 2}
    requests = {"fail": ["", "no such luck"], "size": [1, 2]}
    shown = lab.ended(lab.submit(client, param2requests=requests, **options))
    states = {(run["params"]["fail"], run["state"]) for run in shown}
    assert states == {("", "succeeded"), ("no such luck", "failed")}
    failed = next(run for run in shown if run["state"] == "failed")
    assert "RuntimeError: no such luck" in lab.log(failed["id"])
    assert sum(lab.results("digits").values()) == 4

    again = lab.submit(client, param2requests={**requests, "wait": [0.0]}, **options)
    assert {run["params"]["fail"] for run in lab.ended(again)} == {"no such luck"} and len(again) == 4


def test_what_was_cancelled_counts_no_more_and_what_waits_counts(lab: LudwigLab) -> None:
    lab.write({"mine/job.py": JOB, "corpora/a.txt": "words"})
    client = lab.client("digits", {**DEFAULTS, "wait": 600.0})
    options: dict[str, Any] = {"src_ps": [Path("mine")], "data_ps": [Path("corpora")], "reps": 2}
    first, second = lab.submit(client, param2requests={}, **options)
    assert lab.submit(client, param2requests={}, **options) == [], "they are under way"
    first.cancel()
    assert first.state == "cancelled"
    (third,) = lab.submit(client, param2requests={}, **options)
    assert second.refresh().state != "cancelled", "a submit stops nobody"
    for run in (second, third):
        run.cancel()


def test_the_example_runs(lab: LudwigLab) -> None:
    shutil.copytree(EXAMPLE, lab.project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    text = (EXAMPLE / "src" / "params.py").read_text()
    found: dict[str, Any] = {}
    exec(text, found)
    client = lab.client("ludwig-style", found["param2default"])
    options: dict[str, Any] = {"src_ps": [Path("src")], "data_ps": [Path("corpora")]}
    lab.succeeded(lab.submit(client, param2requests=found["param2requests"], **options))
    for job in (lab.share / "ludwig-style" / "runs").glob("param_*/*num*"):
        losses = [float(row[1]) for row in read_csv(job / "loss.csv")[1:]]
        assert len(losses) == 20 and losses[-1] < losses[0]
        assert (job / "saves" / "weights.npy").stat().st_size > 0


# --- the page -------------------------------------------------------------------------------------------------------

MODULE = """
from pathlib import Path

def neural_net_job(param2val):
    words = Path("corpora/a.txt").read_text() + (Path("{drive}") / "tasks" / "b.txt").read_text()
    print("trained with", words, param2val["lr"])
"""


def test_the_example_of_the_readme_runs(lab: LudwigLab) -> None:
    """Its two files are in the page; here the drive has another path."""
    submit, run = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lab.write({"submit.py": submit, "run.py": run.replace("/media/research_data", str(lab.share))})
    lab.write({"src/your_module.py": MODULE.format(drive=lab.share / "your_project_name")})
    lab.write({"corpora/a.txt": "words ", "tasks/b.txt": "tasks"})
    for count in (4, 0):
        command = [sys.executable, "submit.py"]
        env = {**lab.yard.env, "LUDWIG_MNT": str(lab.share)}
        done = subprocess.run(command, cwd=lab.project, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("Running") == count
    shown = lab.succeeded(lab.yard.client().runs(project="your_project_name"))
    assert sorted(run["params"]["lr"] for run in shown) == [0.1, 0.1, 0.2, 0.2]
    for found in shown:
        assert lab.log(found["id"]).splitlines()[-1] == f"trained with words tasks {found['params']['lr']}"


def cells() -> list[list[str]]:
    rows = [row for row in PAGE.read_text(encoding="utf-8").splitlines() if row.startswith("| `")]
    return [[cell.strip().strip("`") for cell in row.strip("|").split(" | ")] for row in rows]


@pytest.fixture
def one_machine(tmp_path: Path) -> Iterator[Yard]:
    """A yard whose only node is called hoff. `python` has runyard, and `python3`, which jobs use, has pandas."""
    home = Yard(cpus=2, node="hoff")
    programs = {"python": sys.executable, "python3": TRAINER_PYTHON, "runyard": f"{sys.executable} -m runyard"}
    for name, program in programs.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
        path.chmod(0o755)
    (tmp_path / "drive").mkdir()
    home.env |= {"PATH": f"{tmp_path / 'bin'}:{home.env['PATH']}", "LUDWIG_MNT": str(tmp_path / "drive")}
    yield home
    home.remove()


def test_each_new_line_of_the_page_works(one_machine: Yard, tmp_path: Path) -> None:
    place = tmp_path / "ludwig-style"
    shutil.copytree(EXAMPLE, place, ignore=shutil.ignore_patterns("__pycache__"))
    rows = [row for row in cells() if row[0].startswith(("python", "ludwig", "cat ", "ls "))]
    assert len(rows) > 10
    script = "\n".join(
        ["runyard up --detach", *(new for _, new in rows[:-1]), "runyard wait --state active", rows[-1][1]]
    )
    done = subprocess.run(
        ["sh", "-exc", script], cwd=place, env=one_machine.env, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = Counter(path.parent.name for path in (tmp_path / "drive" / "ludwig-style" / "runs").glob("param_*/*num*"))
    assert sorted(counts.values()) == [1, *[3] * 6], "the minimal one, and six that the lines ask for thrice"


def test_each_old_line_stands_beside_its_new_one() -> None:
    for old, new in cells():
        if old.startswith("ludwig -src"):
            assert new == f"runyard {old}"
