"""Texts for people."""

from __future__ import annotations

import datetime

import pytest

from runyard.cli.show import formats, run_page, tables
from runyard.model.states import FAILURES, RunState


def at(seconds_ago: float) -> str:
    then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds_ago)
    return then.isoformat().replace("+00:00", "Z")


@pytest.mark.parametrize(
    ("seconds", "said"), [(3, "3s"), (59, "59s"), (61, "1m"), (7300, "2h"), (90000, "1d"), (-9, "0s")]
)
def test_how_long_ago(seconds: float, said: str) -> None:
    assert formats.ago(at(seconds)) == said


def test_how_long_it_ran() -> None:
    assert formats.elapsed({"started_at": None}) == "-"
    assert formats.elapsed({"started_at": at(70), "ended_at": None}) == "1m10s"
    assert formats.elapsed({"started_at": at(70), "ended_at": at(10), "wall_time": 58.2}) == "58s"


def test_a_command_can_be_typed_again() -> None:
    assert formats.command_line(["python", "a b.py", "$X"]) == "python 'a b.py' '$X'"
    assert formats.command_line("make && ./a") == "make && ./a"


def test_a_command_is_shown_as_it_is_executed() -> None:
    run = {"command": ["train", "{lr}", "{index}"], "params": {"lr": "a b", "x": 1}, "params_as": "flags", "index": 3}
    assert formats.filled_command(run) == "train 'a b' 3 --x 1"
    assert formats.filled_command({"command": "awk '{print}'", "params": {}, "array": None}) == "awk '{print}'"


def test_nothing_moves_the_cursor() -> None:
    assert (
        formats.one_line("a\nb\x1b[31mc\t\x07d\udcff")
        == "a⏎b␛[31mc \N{REPLACEMENT CHARACTER}d\N{REPLACEMENT CHARACTER}"
    )


def test_resources() -> None:
    whole = {"cpus": 2, "memory": 4 << 30, "gpus": 1, "gpu_type": "a100", "gpu_memory": 40 << 30, "time": 7200}
    assert formats.asked(whole) == "2 cpus, 4.0 GB memory, 1 a100 gpu of 40.0 GB, at most 2h00m"
    assert formats.asked({"cpus": 1}) == "1 cpu"
    assert tables.short_resources(whole) == "2cpu 4.0G 1gpu"
    assert formats.asked({"nodes": 4, "cpus": 2}) == "4 nodes, on each 2 cpus"
    assert tables.short_resources({"nodes": 4, "cpus": 2}) == "4x 2cpu"


def run_in(state: str, reason: str | None = None) -> dict:
    resources = {"cpus": 1, "memory": 3 << 30, "time": 5400}
    return {"id": 42, "state": state, "reason": reason, "resources": resources, "after": [7], "peak_memory": None}


@pytest.mark.parametrize(
    "run",
    [run_in(state) for state in RunState if state != "failed"]
    + [run_in("failed", reason) for reason in sorted(FAILURES)],
    ids=lambda run: f"{run['state']}-{run['reason']}",
)
def test_there_is_always_a_next_step(run: dict) -> None:
    from runyard.cli.main import COMMANDS

    steps = run_page.next_steps(run)
    assert steps
    for command, why in steps:
        program, name, *_ = command.split()
        assert (program, name in COMMANDS) == ("runyard", True)
        assert why


def test_the_next_step_fits_the_failure() -> None:
    assert run_page.next_steps(run_in("failed", "oom"))[0][0].startswith("runyard submit --memory 6G")
    assert run_page.next_steps(run_in("failed", "timeout"))[0][0].startswith("runyard submit --time 3h00m")
    assert run_page.next_steps(run_in("failed", "dependency"))[0][0] == "runyard show 7"


GIT = {"head": "3f2a91c04b77", "branch": "main", "remote": None, "dirty": True, "diff": None}


@pytest.mark.parametrize(
    ("git", "said"),
    [
        (GIT, "3f2a91c04b of main, changed: 14 files, 1.0 KB"),
        ({**GIT, "dirty": False, "branch": None}, "3f2a91c04b: 14 files, 1.0 KB"),
        ({**GIT, "head": None}, "no commit yet of main, changed: 14 files, 1.0 KB"),
        (None, "14 files, 1.0 KB"),
    ],
)
def test_where_the_code_came_from(git: dict[str, object] | None, said: str) -> None:
    assert formats.code({"code": {"tree": "sha256:…", "files": 14, "size": 1024, "git": git}}) == said
    assert formats.code({}) == ""


def test_which_data_it_reads() -> None:
    data = [{"tree": "sha256:…", "to": "corpora"}, {"path": "/scratch/\nmnist", "to": "mnist"}]
    assert formats.data({"data": data}).startswith("corpora, mnist at /scratch/")
    assert "\n" not in formats.data({"data": data})
    assert formats.data({}) == ""


def _recorded(*notes: str) -> dict[str, object]:
    record = {"python": "3.11.7", "prefix": "/home/ada/.venv", "packages": 57, "notes": list(notes)}
    return {"python_env": {"use": "record", "record": record}}


def test_the_python_of_the_submitter_is_told_in_one_line() -> None:
    told = "3.11.7 in /home/ada/.venv, 57 packages"
    assert formats.python(_recorded()) == told
    assert formats.python(_recorded("nets==0.1 was installed from /home/ada/nets")) == (
        f"{told}; nets==0.1 was installed from /home/ada/nets"
    )
    wheel = "torch-2.6.0+computecanada-cp311-cp311-linux_x86_64.whl"
    long = f"torch==2.6.0 was installed from /cvmfs/soft.example/custom/python/wheelhouse/gentoo2023/x86-64-v3/{wheel}"
    assert formats.python(_recorded(long)) == f"{told}; torch==2.6.0 was installed from …/{wheel}"
    many = [f"p{number}==1 was installed from /wheels/p{number}-1-py3-none-any.whl" for number in range(5)]
    assert formats.python(_recorded(*many)) == f"{told}, 5 of them only here: p0==1, p1==1, p2==1 and 2 more"
