"""Variables of Slurm and Grid Engine for their scripts, at any kind of site.

The spec has those that the submitter knew; these are the ones that only the agent knows.
"""

from __future__ import annotations

from collections.abc import Callable

from runyard.model.array import Array
from runyard.model.spec import RunSpec
from runyard.model.wire import AttemptKey

UNDEFINED = "undefined"  # Grid Engine's value without an array


def variables(spec: RunSpec, key: AttemptKey, kind: str, node: str | None) -> dict[str, str]:
    """`kind` is the site's: a scheduler of the same dialect sets most of them itself. Slurm's srun, for example, needs
    Slurm's own id of the job. `node` is None if a scheduler of another dialect chooses it later.
    """
    if spec.dialect is None:
        return {}
    of_job, of_array = _OF[spec.dialect]
    return {**({} if kind == spec.dialect else of_job(spec, key, node)), **of_array(spec, key)}


def _slurm_job(spec: RunSpec, key: AttemptKey, node: str | None) -> dict[str, str]:
    cpus, run = str(spec.resources.cpus), str(key.run)
    found = {
        "ENVIRONMENT": "BATCH",
        "SLURM_JOB_ID": run,
        "SLURM_JOBID": run,
        "SLURM_CPUS_ON_NODE": cpus,
        "SLURM_JOB_CPUS_PER_NODE": cpus,
        "SLURM_JOB_NUM_NODES": str(spec.resources.nodes),
        "SLURM_NNODES": str(spec.resources.nodes),
        "SLURM_NODEID": "0",
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_TASKS_PER_NODE": spec.env.get("SLURM_NTASKS", "1"),
    }
    if spec.resources.memory:
        found["SLURM_MEM_PER_NODE"] = str(spec.resources.memory >> 20)
    if spec.resources.gpus:
        found["SLURM_GPUS_ON_NODE"] = str(spec.resources.gpus)
    if key.attempt > 1:
        found["SLURM_RESTART_COUNT"] = str(key.attempt - 1)
    return {**found, **_node(node, "SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURMD_NODENAME")}


def _slurm_array(spec: RunSpec, key: AttemptKey) -> dict[str, str]:
    array = spec.array
    if array is None:
        return {"SLURM_JOB_NAME": spec.name}
    return {
        "SLURM_JOB_NAME": spec.name,
        "SLURM_ARRAY_JOB_ID": str(array.first_run(key.run)),
        "SLURM_ARRAY_TASK_ID": str(array.index),
        "SLURM_ARRAY_TASK_COUNT": str(array.count),
        "SLURM_ARRAY_TASK_MIN": str(array.first),
        "SLURM_ARRAY_TASK_MAX": str(array.last),
        "SLURM_ARRAY_TASK_STEP": str(array.step),
    }


def _gridengine_job(spec: RunSpec, key: AttemptKey, node: str | None) -> dict[str, str]:
    return {
        "ENVIRONMENT": "BATCH",
        "NSLOTS": str(spec.resources.cpus * spec.resources.nodes),
        "NHOSTS": str(spec.resources.nodes),
        "NQUEUES": "1",
        "RESTARTED": "1" if key.attempt > 1 else "0",
        **_node(node, "HOSTNAME"),
    }


def _gridengine_array(spec: RunSpec, key: AttemptKey) -> dict[str, str]:
    def told(number: Callable[[Array], int]) -> str:
        return str(number(spec.array)) if spec.array is not None else UNDEFINED

    return {
        "JOB_ID": str(spec.array.first_run(key.run) if spec.array else key.run),  # as qsub printed it
        "JOB_NAME": spec.name,
        "REQNAME": spec.name,
        "REQUEST": spec.name,
        "SGE_TASK_ID": told(lambda array: array.index),
        "SGE_TASK_FIRST": told(lambda array: array.first),
        "SGE_TASK_LAST": told(lambda array: array.last),
        "SGE_TASK_STEPSIZE": told(lambda array: array.step),
    }


def scratch_names(spec: RunSpec) -> list[str]:
    """Variables for its scratch directory, besides TMPDIR."""
    return ["SLURM_TMPDIR"] if spec.dialect == "slurm" else []


def _node(node: str | None, *names: str) -> dict[str, str]:
    return {} if node is None else dict.fromkeys(names, node)


_OF = {"slurm": (_slurm_job, _slurm_array), "gridengine": (_gridengine_job, _gridengine_array)}
