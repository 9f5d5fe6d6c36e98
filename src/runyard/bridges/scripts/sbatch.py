"""sbatch: the job that a script and its flags describe, by Slurm's rules."""

from __future__ import annotations

import os
import re
from typing import Any

from runyard import errors
from runyard.bridges.scripts import arrays, directives, exports, jobs, patterns, script
from runyard.bridges.scripts.flags import Given
from runyard.bridges.scripts.job import Here, ScriptJob
from runyard.bridges.scripts.script import Script
from runyard.bridges.scripts.slurm import SBATCH
from runyard.model import native_units, signals, units
from runyard.model.native_units import Writing

LEAST_MEMORY = 30 << 20  # Slurm's MinRAMSpace: no job's control group gets less
DEFAULT_NICE = "100"
_EXPORT_WORDS = ("ALL", "NONE", "NIL", "")
_GRES = re.compile(r"(?:gres[:/])?gpu(?::(\d*[A-Za-z][\w.-]*))?(?:[:=](\d+))?")  # a type may be 2080ti, or 1g.5gb
_GPUS = re.compile(r"(?:(\d*[A-Za-z][\w.-]*):)?(\d+)")
_SIGNAL = re.compile(r"(?:[BR]+:)?(\w+)(?:@(\d+))?")


def load(given: Given, standard_input: bytes) -> Script:
    """The script that is meant: a file, a wrapped command, or what came by standard input."""
    wrapped = given.get("wrap")
    if wrapped is not None:
        if given.words:
            raise errors.InvalidInput("script arguments are not permitted with --wrap", "put them into the command")
        return Script(name="wrap", text=f"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{wrapped}\n")
    return script.load(given.words[0]) if given.words else script.made("sbatch", standard_input)


def all_flags(given: Given, source: Script) -> Given:
    """The flags of the command line override those of the script."""
    _check_first_line(source)
    return directives.read_sbatch(source.text, SBATCH).with_stronger(given)


def read(whole: Given, source: Script, here: Here) -> ScriptJob:
    """`whole`: see `all_flags`."""
    job = ScriptJob(
        dialect="slurm",
        name=whole.get("job_name") or source.name,
        script=source.text,
        command=whole.words[1:],
        cwd=os.path.normpath(os.path.join(here.directory, whole.get("chdir") or "")),
        append=_appends(whole.get("open_mode") or "truncate"),
        queue=whole.get("partition"),
        site=whole.get("site"),
        native=whole.native,
    )
    array = whole.get("array")
    job.tasks = arrays.parse_slurm(array) if array is not None else None
    _ask(job, whole)
    _name_files(job, whole, here)
    _export(job, whole, source, here)
    _set_life(job, whole)
    for name in sorted(here.environ):
        if name.startswith("SBATCH_"):
            job.notice(f"{name} is not read", "give it as a flag")
    return job


def _appends(mode: str) -> bool:
    if not any(known.startswith(mode.lower()) for known in ("append", "truncate")):
        raise errors.InvalidInput(f"--open-mode: {mode!r} is neither append nor truncate")
    return "append".startswith(mode.lower())


def _check_first_line(source: Script) -> None:
    if source.text.startswith("#!"):
        return
    indented = source.text.lstrip().startswith("#!")
    fix = "remove the blanks before #! and before each #SBATCH" if indented else "begin it with a line like #!/bin/sh"
    raise errors.InvalidInput(
        "this does not look like a batch script: its first line must start with #! and the path to an interpreter", fix
    )


def _ask(job: ScriptJob, given: Given) -> None:
    job.nodes = _nodes(given.get("nodes"))
    job.processes = _number(given, "ntasks") or (_number(given, "tasks_per_node") or 1) * job.nodes
    job.gpus, job.gpu_type = _gpus(given, job)
    job.cpus = _number(given, "cpus_per_task") or _cpus_of_gpus(given, job) or 1
    job.memory = _memory(given, job)
    if job.memory is not None and job.memory < LEAST_MEMORY:
        asked, job.memory = units.show_size(job.memory), LEAST_MEMORY
        job.notice(f"{asked} of memory is less than any program needs: it gets 30 MB, as from Slurm", "ask for more")
    time = given.get("time")
    job.time = native_units.parse_time(time, Writing.SLURM, "--time") if time is not None else None


def _number(given: Given, name: str) -> int | None:
    text = given.get(name)
    if text is not None and (not text.isdecimal() or int(text) < 1):
        raise errors.InvalidInput(f"{_flag(name)}: {text!r} is not a whole number above zero")
    return int(text) if text is not None else None


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _nodes(text: str | None) -> int:
    """`3`, or `2-4`, of which the smaller number is enough."""
    match = re.fullmatch(r"(\d{1,6})(?:-\d{1,6})?", "1" if text is None else text)
    if match is None or int(match[1]) < 1:
        raise errors.InvalidInput(f"--nodes: {text!r} is not a number of nodes")
    return int(match[1])


def _gpus(given: Given, job: ScriptJob) -> tuple[int, str | None]:
    for name, factor in (("gpus", 1), ("gpus_per_node", job.nodes), ("gpus_per_task", job.processes)):
        text = given.get(name)
        if text is not None:
            match = _GPUS.fullmatch(text)
            if match is None:
                raise errors.InvalidInput(f"{_flag(name)}: {text!r} is no number of GPUs", "write it like 2 or a100:2")
            return _of_each_node(int(match[2]) * factor, job, _flag(name)), match[1]
    wanted = given.get("gres")
    if wanted in (None, "none"):
        return 0, None
    match = _GRES.fullmatch(str(wanted))
    if match is None:
        raise errors.InvalidInput(f"--gres={wanted} is not supported", "write it like --gres=gpu:1 or gpu:a100:2")
    return int(match[2] or 1), match[1]


def _of_each_node(gpus: int, job: ScriptJob, flag: str) -> int:
    if gpus % job.nodes:
        raise errors.InvalidInput(f"{flag}: {job.nodes} nodes cannot have {gpus} GPUs alike", "use --gpus-per-node")
    return gpus // job.nodes


def _cpus_of_gpus(given: Given, job: ScriptJob) -> int | None:
    each = _number(given, "cpus_per_gpu")
    return -(-each * job.gpus // _processes_of_node(job)) or None if each else None


def _processes_of_node(job: ScriptJob) -> int:
    """At the most."""
    return -(-job.processes // job.nodes)


def _memory(given: Given, job: ScriptJob) -> int | None:
    factors = {"mem": 1, "mem_per_cpu": job.cpus * _processes_of_node(job), "mem_per_gpu": job.gpus}
    for name, factor in factors.items():
        text = given.get(name)
        if text is not None:
            size = native_units.parse_size(text, Writing.SLURM, _flag(name))
            job.also |= {"mem": "0"} if size is None and name == "mem" else {}  # all that the node has
            return size * factor if size and factor else None
    return None


def _name_files(job: ScriptJob, given: Given, here: Here) -> None:
    default = "slurm-%A_%a.out" if job.tasks else "slurm-%j.out"
    job.stdout = _file(given.get("output") or default, job, here)
    apart = given.get("error")
    job.stderr = _file(apart, job, here) if apart else None


def _file(pattern: str, job: ScriptJob, here: Here) -> str:
    path = patterns.from_slurm(pattern, name=job.name, user=here.user)
    return os.path.normpath(os.path.join(patterns.escape(job.cwd), path))


def _export(job: ScriptJob, given: Given, source: Script, here: Here) -> None:
    items = (given.get("export") or "ALL").split(",")
    named, missing = exports.by_name([item for item in items if item not in _EXPORT_WORDS], here.environ)
    job.carried = exports.everything(here.environ, source.text) if "ALL" in items else exports.Carried()
    job.carried.env.update(named)
    for name in missing:
        job.notice(f"--export: {name} is not set here, so the job does not get it")
    job.variables = {"SLURM_SUBMIT_DIR": here.directory, "SLURM_SUBMIT_HOST": here.host}
    if "cpus_per_task" in given:
        job.variables["SLURM_CPUS_PER_TASK"] = str(job.cpus)
    if "cpus_per_gpu" in given:
        job.variables["SLURM_CPUS_PER_GPU"] = str(given.get("cpus_per_gpu"))
    if "ntasks" in given or "tasks_per_node" in given:
        job.variables |= {"SLURM_NTASKS": str(job.processes), "SLURM_NPROCS": str(job.processes)}


def _set_life(job: ScriptJob, given: Given) -> None:
    dependency, nice, signal = given.get("dependency"), given.get("nice"), given.get("signal")
    if dependency is not None:
        job.dependencies = list(jobs.read_slurm_dependencies(dependency, job.name))
    if nice is not None:
        job.priority = _priority(nice or DEFAULT_NICE)
        job.also["nice"] = nice or DEFAULT_NICE
    if signal is not None:
        job.stop = _stop(signal)
    if "requeue" in given and "no_requeue" not in given:
        job.retry = 1


def _priority(nice: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,9}", nice):
        raise errors.InvalidInput(f"--nice: {nice!r} is not a whole number")
    return -max(-1000, min(1000, int(nice)))


def _stop(text: str) -> dict[str, Any]:
    """What warns of the time limit is in runyard also the stop signal."""
    match = _SIGNAL.fullmatch(text)
    name = match[1].upper().removeprefix("SIG") if match else ""
    if match is None or name not in signals.KNOWN:
        known = ", ".join(signals.KNOWN)
        raise errors.InvalidInput(f"--signal: {text!r} is not supported", f"like USR1@60, of {known}")
    return {"signal": name, "grace": int(match[2] or 60)}
