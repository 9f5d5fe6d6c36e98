"""The environment of a run: complete, and the same on every start."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from runyard import machine
from runyard.model import parameter_passing
from runyard.model.python_env import PIP
from runyard.model.resources import Capacity
from runyard.model.spec import RunSpec
from runyard.model.wire import AttemptKey

INHERITED = re.compile(
    r"HOME|USER|LOGNAME|SHELL|PATH|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|XDG_\w+|LD_LIBRARY_PATH|CUDA_HOME|CUDA_PATH"
    r"|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|(?i:(http|https|ftp|all|no)_proxy)"
)
THREADS = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip
OF_PYTHON = ("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYTHONHOME", "PYTHONPATH")
RESERVED = frozenset(
    {
        "RUNYARD_RUN_ID", "RUNYARD_ATTEMPT", "RUNYARD_PARAMS", "RUNYARD_INDEX", "RUNYARD_SEED", "RUNYARD_RESUME",
        "RUNYARD_PROJECT", "RUNYARD_TAG", "RUNYARD_INPUTS", "RUNYARD_CODE", "RUNYARD_DATA",
        "RUNYARD_SCRATCH", "RUNYARD_METRICS", "RUNYARD_CONTROL", "RUNYARD_STOP_SIGNAL", "RUNYARD_WARNING_SIGNAL",
    }
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Paths:
    """The directories in a run's variables."""

    cwd: str
    params: str
    outputs: str
    checkpoints: str
    inputs: str
    code: str
    data: str
    metrics: str
    control: str


def inherited(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables that a run inherits from its agent: an allow-list, because others may hold secrets."""
    return {name: value for name, value in environ.items() if INHERITED.fullmatch(name)}


def build(
    spec: RunSpec, key: AttemptKey, paths: Paths, gpus: tuple[str, ...], site: Capacity,
    base: Mapping[str, str], defaults: Mapping[str, str] | None = None, *, resume: str | None = None, here: bool = True,
    python: str | None = None,
) -> dict[str, str]:  # fmt: skip
    """In increasing precedence: the agent's, the site's, the submitter's on the same machine, runyard's, the spec's.

    `resume`: the directory with checkpoints to resume from, if any. `here`: runs execute on this machine.
    `python`: the prefix of its Python environment; the runner puts its programs first in PATH.
    """
    complete = {
        **base,
        **(defaults or {}),
        **(_of_origin(spec) if here else {}),
        **_of_runyard(spec, key, paths),
        **_of_gpus(gpus, site),
    }
    if not site.gpus:
        complete.pop("CUDA_VISIBLE_DEVICES", None)
    if python is not None:
        complete = {name: value for name, value in complete.items() if name not in OF_PYTHON}
        complete |= _of_python(spec, python)
    complete.update((name, value) for name, value in spec.env.items() if name not in RESERVED)
    complete["PWD"] = paths.cwd
    if resume is not None:
        complete["RUNYARD_RESUME"] = resume
    return complete


def resolve(path: str, cwd: str) -> str:
    """A directory that the user set, as the user's process resolves it."""
    return os.path.normpath(os.path.join(cwd, path))


def _of_origin(spec: RunSpec) -> dict[str, str]:
    if spec.origin.get("host") != machine.host_id():
        return {}
    return {name: value for name, value in spec.origin["env"].items() if not name.startswith("RUNYARD_")}


def _of_runyard(spec: RunSpec, key: AttemptKey, paths: Paths) -> dict[str, str]:
    found = {
        **(parameter_passing.variables(spec.params) if spec.params_as == parameter_passing.ENV else {}),
        "RUNYARD_RUN_ID": str(key.run),
        "RUNYARD_ATTEMPT": str(key.attempt),
        "RUNYARD_PROJECT": spec.project,
        "RUNYARD_INDEX": str(spec.number),
        "RUNYARD_PARAMS": paths.params,
        "RUNYARD_METRICS": paths.metrics,
        "RUNYARD_CONTROL": paths.control,
        "RUNYARD_STOP_SIGNAL": spec.stop.signal,
        "RUNYARD_WARNING_SIGNAL": (spec.checkpoint or spec.stop).signal,
        "OUTPUT_DIR": paths.outputs,
        "CHECKPOINT_DIR": paths.checkpoints,
        **dict.fromkeys(THREADS, str(spec.resources.cpus)),
    }
    if spec.seed is not None:
        found["RUNYARD_SEED"] = str(spec.seed)
    if spec.inputs:
        found["RUNYARD_INPUTS"] = paths.inputs
    if spec.code is not None:
        found["RUNYARD_CODE"] = paths.code
    if spec.data:
        found["RUNYARD_DATA"] = paths.data
    return found


def _of_python(spec: RunSpec, prefix: str) -> dict[str, str]:
    """As their own `activate` would set them."""
    if spec.python_env.conda is None and spec.python_env.kind == PIP:
        return {"VIRTUAL_ENV": prefix}
    return {"CONDA_PREFIX": prefix, "CONDA_DEFAULT_ENV": os.path.basename(prefix)}


def _of_gpus(gpus: tuple[str, ...], site: Capacity) -> dict[str, str]:
    """A run that requests no GPU must not see those of others."""
    return {"CUDA_VISIBLE_DEVICES": ",".join(gpus)} if site.gpus else {}
