"""The queue in the words of squeue and qstat."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from runyard import errors
from runyard.bridges.scripts import answers, qstat, squeue
from runyard.bridges.scripts.job import Here
from tests.unit.bridges.test_jobs_described import gridengine_job, slurm_job

NOW = datetime.datetime(2026, 11, 15, 12, 0, tzinfo=datetime.UTC)


def run(number: int, state: str = "queued", array: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    started = "2026-11-15T11:58:55.000Z" if state == "running" else None
    return {
        "id": number, "name": "averylongname", "owner": "ann", "state": state, "reason": None, "detail": None,
        "site": None, "node": "node1" if started else None, "array": array, "priority": 0, "resources": {"cpus": 2},
        "exit_code": None, "cancel_requested": False, "created_at": "2026-11-15T11:50:00.000Z", "started_at": started,
        "ended_at": None, "dialect": "gridengine", "command": ["/opt/bin/train.py", "--lr", "1"],
        **fields,
    }  # fmt: skip


def task(first: int, index: int, state: str = "queued", limit: int | None = None, **fields: Any) -> dict[str, Any]:
    array = {"index": index, "first": 1, "last": 9, "step": 1, "offset": index - 1, "count": 9}
    return run(first + index - 1, state, {**array, **({"limit": limit} if limit else {})}, **fields)


def show(*runs: dict[str, Any], form: str = squeue.SHORT, by_task: bool = False) -> list[str]:
    return squeue.lines(list(runs), form, NOW, header=True, by_task=by_task)


def test_squeue() -> None:
    assert show(run(7, "running", site="local"), task(20, 1), task(20, 2), task(20, 4)) == [
        "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)",
        "        20_[1-2,4]       any averylon      ann PD       0:00      1 (Resources)",
        "                 7     local averylon      ann  R       1:05      1 node1",
    ]


def test_squeue_by_task_and_in_long() -> None:
    lines = show(task(20, 1), task(20, 2, "running"), form=squeue.LONG, by_task=True)
    assert [line.split() for line in lines[1:]] == [
        ["20_1", "any", "averylon", "ann", "PENDING", "0:00", "UNLIMITED", "1", "(Resources)"],
        ["20_2", "any", "averylon", "ann", "RUNNING", "1:05", "UNLIMITED", "1", "node1"],
    ]


@pytest.mark.parametrize(
    ("waiting", "reason"),
    [
        (run(9, detail="waits for run 3 and 2 more"), "Dependency"),
        (run(9, detail="waits for 2 more runs"), "Dependency"),
        (run(9, "starting"), "None"),
        (run(9), "Resources"),
        (task(20, 4, limit=3, detail="waits for run 20"), "JobArrayTaskLimit"),
        (task(20, 4, limit=3, detail="waits for run 7"), "Dependency"),
    ],
)
def test_why_a_job_waits(waiting: dict[str, Any], reason: str) -> None:
    assert squeue.reason(waiting) == reason


def test_columns_of_squeue() -> None:
    pending = task(20, 4, limit=3, detail="waits for run 20", resources={"cpus": 4, "time": 90061})
    form = "%i|%j|%T|%t|%u|%M|%D|%R|%N|%P|%A|%F|%K|%l|%C|%r|%Q"
    assert show(pending, form=form)[1] == (
        "20_4|averylongname|PENDING|PD|ann|0:00|1|(JobArrayTaskLimit)||any|23|20|4|1-01:01:01|4|JobArrayTaskLimit|0"
    )
    assert show(pending, task(20, 5, limit=3, detail="waits for run 21"), form="%i %K")[1] == "20_[4-5%3] 4-5%3"
    assert show(run(7, "running", cancel_requested=True), form="%T %.3j|%-x")[1] == "COMPLETING ave|%-x"
    with pytest.raises(errors.InvalidInput, match="%Z is not supported"):
        show(form="%Z")


def test_qstat() -> None:
    lines = qstat.lines(
        [task(20, index) for index in (3, 4, 5)]
        + [run(7, "running", site="local"), run(8, "failed", reason="launch"), run(9, detail="waits for run 8")],
        by_task=False,
    )
    assert lines[0].startswith("job-ID  prior   name       user         state submit/start at     queue  ")
    assert [(words := line.split())[0] + " " + words[4] for line in lines[2:]] == ["7 r", "8 Eqw", "9 hqw", "20 qw"]
    assert lines[3].startswith("      8 0.50000 averylongn ann          Eqw   ")
    assert "local@node1" in lines[2]
    assert lines[-1].endswith("2 3-5:1")
    assert qstat.lines([], by_task=False) == []


@pytest.mark.parametrize(
    ("shown", "state"),
    [
        (run(1), "qw"), (run(1, "starting"), "qw"), (run(1, "running"), "r"), (run(1, detail="waits for run 3"), "hqw"),
        (task(20, 4, limit=3, detail="waits for run 20"), "qw"),
        (run(1, "running", cancel_requested=True), "dr"), (run(1, "failed", reason="launch"), "Eqw"),
        (run(1, "failed", reason="staging"), "Eqw"),
    ],
)  # fmt: skip
def test_states_of_grid_engine(shown: dict[str, Any], state: str) -> None:
    assert qstat.state(shown) == state


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("p", {"qw", "hqw", "Eqw"}), ("r", {"r", "dr"}), ("pr", {"qw", "hqw", "Eqw", "r", "dr"}), ("hj", {"hqw"}),
        ("hu", set()), ("prs", {"qw", "hqw", "Eqw", "r", "dr"}), ("a", {"qw", "hqw", "Eqw", "r", "dr"}),
    ],
)  # fmt: skip
def test_which_states_qstat_is_asked_for(text: str, states: set[str]) -> None:
    assert qstat.read_states(text) == states


@pytest.mark.parametrize("text", ["z", "x", "rz"])
def test_a_state_that_the_queue_does_not_have_is_named(text: str) -> None:
    with pytest.raises(errors.InvalidInput, match=f"qstat: -s {text} is not supported"):
        qstat.read_states(text)


def test_which_states_slurm_is_asked_for() -> None:
    assert squeue.read_states(["pd", "RUNNING"]) == ["PENDING", "RUNNING"]
    assert squeue.read_states([]) == squeue.read_states(["R", "all"]) == []
    assert squeue.read_states(["CF"]) == ["CONFIGURING"], "which no run ever is"
    with pytest.raises(errors.InvalidInput, match="invalid job state specified: pendin"):
        squeue.read_states(["pendin"])


@pytest.mark.parametrize("dialect", [None, "slurm"])
def test_only_jobs_of_qsub_stay_in_its_queue_when_they_could_not_start(dialect: str | None) -> None:
    assert qstat.is_in_error(run(1, "failed", reason="launch"))
    assert not qstat.is_in_error(run(1, "failed", reason="launch", dialect=dialect))


def test_a_run_without_a_name_goes_by_its_program() -> None:
    nameless = run(7, "running", site="local", name="")
    assert " train.py " in qstat.lines([nameless], by_task=False)[2]
    assert show(nameless, form="%j")[1] == "train.py"
    assert show(run(7, name="", command="train.py --lr 1"), form="%j")[1] == "train.py"
    assert "job_name:                   train.py" in qstat.details([nameless], {})


def test_details_tell_the_reason_of_an_error() -> None:
    failed = task(
        20, 3, "failed", reason="launch", detail="no such working directory: /x", ended_at="2026-11-15T11:59:00Z"
    )
    spec = {"cwd": "/x", "env": {"A": "s3cret", "SGE_O_HOME": "/h"}, "stdout": "/x/out", "command": ["a b"]}
    lines = qstat.details([task(20, 1), failed], spec)
    assert lines[0] == "=" * 62
    assert "job_number:                 20" in lines
    assert "stdout_path_list:           NONE:NONE:/x/out" in lines
    assert "env_list:                   A" in lines, "names, never values"
    assert "job_args:                   'a b'" in lines
    assert "job-array tasks:            1-9:1" in lines
    [reason] = [line for line in lines if line.startswith("error reason")]
    assert reason.startswith("error reason          3:      11/15/2026")
    assert reason.endswith(": error: no such working directory: /x")
    assert lines[-1] == "scheduling info:            Job is in error state"


def test_what_was_submitted(here: Here) -> None:
    assert answers.submitted(slurm_job(here), 42, terse=False) == "Submitted batch job 42"
    assert answers.submitted(slurm_job(here, "--array=1-3"), 42, terse=True) == "42"
    assert answers.submitted(gridengine_job(here), 42, terse=False) == 'Your job 42 ("train.sh") has been submitted'
    array = gridengine_job(here, "-t", "2-8:2")
    assert answers.submitted(array, 42, terse=False) == 'Your job-array 42.2-8:2 ("train.sh") has been submitted'
    assert answers.submitted(array, 42, terse=True) == "42.2-8:2"


def test_what_cannot_be_deleted() -> None:
    assert answers.missing("9", [], "ann") == 'denied: job "9" does not exist'
    assert answers.missing("9", ["bob"], "ann") == "The job 9 of user(s) bob does not exist"
    assert answers.missing("nap", [], "ann") == "The job nap of user(s) ann does not exist"
    assert answers.missing(None, ["bob", "eve"], "ann") == "There is no job registered for the following users: bob,eve"


def test_what_was_deleted() -> None:
    assert answers.deleted(run(7), "ann") == "ann has deleted job 7"
    assert answers.deleted(run(7, "running"), "ann") == "ann has registered the job 7 for deletion"
    assert answers.deleted(task(20, 3, "running"), "ann") == "ann has registered the job-array task 20.3 for deletion"
    assert answers.exited(run(7, "failed", exit_code=3)) == "Job 7 exited with exit code 3."
    assert answers.exited(task(20, 3, "failed", reason="oom")) == "Job 20.3 failed: oom"
