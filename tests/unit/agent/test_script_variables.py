"""What scripts for Slurm and Grid Engine find in their environment."""

from __future__ import annotations

from typing import Any

from runyard.agent.bring import script_variables
from runyard.model.spec import RunSpec
from runyard.model.wire import AttemptKey

ARRAY = {"index": 6, "first": 2, "last": 8, "step": 2, "offset": 2, "count": 4}


def variables(kind: str = "local", attempt: int = 1, node: str | None = None, **fields: Any) -> dict[str, str]:
    spec = RunSpec.parse({"command": ["true"], "name": "train", **fields})
    return script_variables.variables(spec, AttemptKey(run=44, attempt=attempt), kind, node)


def test_a_run_of_no_dialect_finds_nothing() -> None:
    assert variables(array=ARRAY) == {}


def test_a_task_of_a_slurm_array() -> None:
    found = variables(dialect="slurm", node="hoff", array=ARRAY, resources={"cpus": 4, "memory": "2G"})
    assert found | {
        "SLURM_JOB_ID": "44", "SLURM_JOBID": "44", "SLURM_JOB_NAME": "train", "SLURM_ARRAY_JOB_ID": "42",
        "SLURM_ARRAY_TASK_ID": "6", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "2",
        "SLURM_ARRAY_TASK_MAX": "8", "SLURM_ARRAY_TASK_STEP": "2", "SLURM_CPUS_ON_NODE": "4",
        "SLURM_MEM_PER_NODE": "2048", "SLURM_NNODES": "1", "SLURM_PROCID": "0", "ENVIRONMENT": "BATCH",
        "SLURM_NODELIST": "hoff",
    } == found  # fmt: skip
    assert "SLURM_RESTART_COUNT" not in found


def test_a_plain_slurm_job() -> None:
    found = variables(dialect="slurm", attempt=3, resources={"gpus": 2}, env={"SLURM_NTASKS": "5"})
    assert not [name for name in found if name.startswith("SLURM_ARRAY")]
    assert (found["SLURM_RESTART_COUNT"], found["SLURM_GPUS_ON_NODE"], found["SLURM_TASKS_PER_NODE"]) == ("2", "2", "5")


def test_a_task_of_a_grid_engine_array() -> None:
    found = variables(dialect="gridengine", node="hoff", array=ARRAY, resources={"cpus": 4}, attempt=2)
    assert found | {
        "JOB_ID": "42", "JOB_NAME": "train", "SGE_TASK_ID": "6", "SGE_TASK_FIRST": "2", "SGE_TASK_LAST": "8",
        "SGE_TASK_STEPSIZE": "2", "NSLOTS": "4", "NHOSTS": "1", "RESTARTED": "1", "HOSTNAME": "hoff",
    } == found  # fmt: skip


def test_a_plain_grid_engine_job() -> None:
    found = variables(dialect="gridengine")
    assert (found["JOB_ID"], found["SGE_TASK_ID"], found["SGE_TASK_LAST"]) == ("44", "undefined", "undefined")


def test_a_scheduler_of_the_same_kind_knows_better() -> None:
    found = variables("slurm", dialect="slurm", array=ARRAY)
    assert "SLURM_JOB_ID" not in found
    assert (found["SLURM_ARRAY_TASK_ID"], found["SLURM_JOB_NAME"]) == ("6", "train")
    grid = variables("gridengine", dialect="gridengine", array=ARRAY)
    assert (grid["JOB_ID"], "NSLOTS" in grid) == ("42", False)


def test_several_nodes() -> None:
    found = variables("gridengine", dialect="slurm", resources={"nodes": 3, "cpus": 2})
    assert (found["SLURM_JOB_NUM_NODES"], found["SLURM_CPUS_ON_NODE"]) == ("3", "2")
    grid = variables("slurm", dialect="gridengine", resources={"nodes": 3, "cpus": 2})
    assert (grid["NHOSTS"], grid["NSLOTS"]) == ("3", "6")


def test_a_scheduler_of_another_kind_decides_on_the_node_later() -> None:
    found = variables("gridengine", dialect="slurm")
    assert found["SLURM_JOB_ID"] == "44"
    assert "SLURM_NODELIST" not in found
