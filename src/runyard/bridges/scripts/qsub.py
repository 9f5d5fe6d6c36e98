"""qsub: the job that a script and its flags describe, by Grid Engine's rules."""

from __future__ import annotations

import os
import re
import shlex

from runyard import errors
from runyard.bridges.scripts import arrays, directives, exports, jobs, patterns, script
from runyard.bridges.scripts.flags import Given
from runyard.bridges.scripts.gridengine import QSUB
from runyard.bridges.scripts.job import Here, ScriptJob
from runyard.bridges.scripts.script import Script
from runyard.model import native_units
from runyard.model.native_units import Writing
from runyard.model.spec_values import NAME_PATTERN

MEMORY = ("h_vmem", "s_vmem", "mem_free", "virtual_free", "h_rss", "m_mem_free", "mem", "memory")  # each for one slot
GPUS = ("gpu", "gpus", "ngpus")
_BAD_IN_NAME = re.compile(r"[\n\t\r/:@\\*?\"']")
_UNEXPANDED = re.compile(r"\$\{?[A-Za-z_]\w*")


def load(given: Given, standard_input: bytes) -> Script | None:
    """The script that is meant; None where the words are a command (`-b y`)."""
    if is_yes(given, "b"):
        if not given.words:
            raise errors.InvalidInput("no command was given", "name one: runyard qsub -b y COMMAND")
        return None
    return script.load(given.words[0]) if given.words[:1] not in ([], ["-"]) else script.made("STDIN", standard_input)


def all_flags(given: Given, source: Script | None) -> Given:
    """The flags of the command line override those of the script."""
    if source is None:
        return given
    prefix = given.get("C")
    return directives.read_qsub(source.text, QSUB, "#$" if prefix is None else prefix).with_stronger(given)


def read(whole: Given, source: Script | None, here: Here) -> ScriptJob:
    """`whole`: see `all_flags`."""
    interpreter = whole.get("S")
    if source is not None and interpreter:
        source = source.with_interpreter(interpreter)
    job = ScriptJob(
        dialect="gridengine",
        name=_name(whole, source),
        script=source.text if source is not None else None,
        command=_command(whole) if source is None else whole.words[1:],
        cwd=_directory(whole, here),
        tasks=_tasks(whole),
        append=True,
        queue=whole.get("q"),
        site=whole.get("site"),
        native=whole.native,
    )
    if source is None:
        _tell_joined(job, whole.words)
    elif not interpreter:
        _tell_first_line(job, source)
    _ask(job, whole)
    _name_files(job, whole, here)
    _export(job, whole, source, here)
    _set_life(job, whole)
    return job


def is_yes(given: Given, name: str) -> bool:
    text = (given.get(name) or "n").lower()
    if text not in ("y", "yes", "n", "no"):
        raise errors.InvalidInput(f"-{name}: {text!r} is neither y nor n")
    return text in ("y", "yes")


def _command(given: Given) -> list[str] | str:
    """Grid Engine joins the words by blanks and has a shell read them once more, unless `-shell n` forbids it."""
    if "shell" in given and not is_yes(given, "shell"):
        return given.words
    text, shell = " ".join(given.words), given.get("S")
    return [shell, "-c", text] if shell else text


def _tell_joined(job: ScriptJob, words: list[str]) -> None:
    if job.command != words and any(shlex.quote(word) != word for word in words):
        text = f"-b y: a shell reads the words once more, without their quotes: {' '.join(words)}"
        job.notice(text, "forbid it with -shell n")


def _tell_first_line(job: ScriptJob, source: Script) -> None:
    """A shell that reads another language fails at once, with an error that does not explain why."""
    if not source.is_shell:
        program = source.interpreter if "/" in source.interpreter else f"/PATH/TO/{source.interpreter}"
        job.notice(
            "the #! line counts here; a queue without shell_start_mode unix_behavior has a shell read the script",
            f"add a line that counts in every queue: #$ -S {program}",
        )


def _name(given: Given, source: Script | None) -> str:
    named = given.get("N")
    if named is None:
        return source.name if source is not None else os.path.basename(given.words[0])
    bad = _BAD_IN_NAME.search(named)
    if bad:
        raise errors.InvalidInput(f"-N: the name must not contain {bad[0]}", "choose another name")
    if not named or named[0].isdigit():
        raise errors.InvalidInput(f"-N: {named!r} cannot start with a digit", f"write -N j{named}")
    return named


def _directory(given: Given, here: Here) -> str:
    if given.get("wd") is not None:
        return os.path.normpath(os.path.join(here.directory, given.get("wd") or ""))
    return here.directory if "cwd" in given else here.home


def _tasks(given: Given) -> arrays.ArrayTasks | None:
    tasks, limit = given.get("t"), given.get("tc")
    if limit is not None and (not limit.isdecimal() or tasks is None):
        raise errors.InvalidInput(f"-tc: {limit!r} is no number of tasks of an array", "write it like -t 1-100 -tc 4")
    return arrays.parse_gridengine(tasks, int(limit or 0) or None) if tasks is not None else None


def _ask(job: ScriptJob, given: Given) -> None:
    environment = given.get("pe")
    if environment is not None:
        name, _, slots = environment.partition(" ")
        job.cpus = _slots(slots)
        job.variables["PE"] = job.also["pe"] = name
    asked = [item for text in given.all("l") for item in text.split(",") if item]
    unknown = [item for item in asked if _resource(job, item) is not None]
    soft = [item for item in unknown if item.startswith("s_rt=")]
    if soft:
        _warn(job, soft[-1].partition("=")[2])
    if len(unknown) > len(soft):
        job.native["l"] = ",".join(item for item in unknown if item not in soft)


def _slots(text: str) -> int:
    """`4`, or `2-8`, of which the smaller number is enough."""
    match = re.fullmatch(r"(\d{1,6})(?:-\d{0,6})?", text)
    if match is None or int(match[1]) < 1:
        raise errors.InvalidInput(f"-pe: {text!r} is no number of slots", "write it like -pe smp 4")
    return int(match[1])


def _resource(job: ScriptJob, item: str) -> str | None:
    """Returns resources that only the site's scheduler knows."""
    name, _, value = item.partition("=")
    if name == "h_rt":
        job.time = native_units.parse_time(value, Writing.GRIDENGINE, "-l h_rt")
    elif name in MEMORY:
        size = native_units.parse_size(value, Writing.GRIDENGINE, f"-l {name}")
        job.memory = max(job.memory or 0, (size or 0) * job.cpus) or None
    elif name in GPUS:
        if value and not value.isdecimal():
            raise errors.InvalidInput(f"-l {item}: {value!r} is no number of GPUs")
        job.gpus = int(value or 1)
    else:
        return item
    return None


def _warn(job: ScriptJob, text: str) -> None:
    """Grid Engine's soft limit is a signal; what warns of the hard one is in runyard also the stop signal."""
    soft = native_units.parse_time(text, Writing.GRIDENGINE, "-l s_rt")
    if soft and job.time and soft < job.time:
        job.stop = {"signal": "USR1", "grace": job.time - soft}
    else:
        job.notice("-l s_rt: it warns of no limit, so nothing is done about it", "ask for a longer h_rt as well")


def _name_files(job: ScriptJob, given: Given, here: Here) -> None:
    task = ".%a" if job.tasks else ""
    name = patterns.escape(job.name)
    job.stdout = _file(given, "o", f"{name}.o%A{task}", job, here)
    job.stderr = None if is_yes(given, "j") else _file(given, "e", f"{name}.e%A{task}", job, here)


def _file(given: Given, flag: str, default: str, job: ScriptJob, here: Here) -> str:
    asked = given.get(flag) or ""
    if ":" in asked:
        host, _, asked = asked.partition(":")
        if host:
            raise errors.InvalidInput(f"-{flag}: a path for the host {host!r} alone is not supported", "name the path")
    path = patterns.from_gridengine(asked, name=job.name, user=here.user, home=here.home)
    whole = os.path.join(patterns.escape(job.cwd), path)
    is_directory = not asked or asked.endswith("/") or os.path.isdir(whole.replace("%%", "%"))
    return os.path.normpath(os.path.join(whole, default) if is_directory else whole)


def _export(job: ScriptJob, given: Given, source: Script | None, here: Here) -> None:
    text = source.text if source is not None else " ".join(given.words)
    job.carried = exports.everything(here.environ, text) if "V" in given else exports.Carried()
    named, missing = exports.by_name(
        [item for listed in given.all("v") for item in split_variables(listed, job)], here.environ
    )
    job.carried.env.update(named)
    for name in missing:
        job.notice(f"-v: {name} is not set here, so the job does not get it")
    for name, value in named.items():
        _tell_unexpanded(name, value, job)
    job.variables |= {
        "SGE_O_WORKDIR": here.directory,
        "SGE_O_HOME": here.home,
        "SGE_O_HOST": here.host,
        "SGE_O_LOGNAME": here.user,
        "SGE_O_SHELL": here.environ.get("SHELL", "/bin/sh"),
        "SGE_O_PATH": here.environ.get("PATH", ""),
    }


def split_variables(text: str, job: ScriptJob) -> list[str]:
    """At commas, and there is no way to write a comma: Grid Engine takes all that follows a quote as one value."""
    items = text.split(",")
    quoted = next((place for place, item in enumerate(items) if re.search(r"[\"']", item)), None)
    if quoted is None:
        return [item for item in items if item]
    if quoted + 1 < len(items):
        name = items[quoted].partition("=")[0]
        job.notice(
            f"-v: the quotes belong to the value of {name}, and so does all that follows",
            f"export {name} and the others, and name them only: -v {name},…",
        )
    return [*filter(None, items[:quoted]), ",".join(items[quoted:])]


def _tell_unexpanded(name: str, value: str, job: ScriptJob) -> None:
    match = _UNEXPANDED.search(value)
    if match:
        job.notice(
            f"-v: {name} is the text {value!r}: neither the shell nor Grid Engine replaces {match[0]} in single quotes",
            f'use double quotes: -v {name}="{value}"',
        )


def _set_life(job: ScriptJob, given: Given) -> None:
    job.dependencies = [
        *jobs.read_gridengine_dependencies(given.all("hold_jid"), each=False),
        *jobs.read_gridengine_dependencies(given.all("hold_jid_ad"), each=True),
    ]
    priority, project = given.get("p"), given.get("P")
    if priority is not None:
        if not re.fullmatch(r"-?\d{1,4}", priority) or not -1023 <= int(priority) <= 1024:
            raise errors.InvalidInput(f"-p: {priority!r} must be a whole number from -1023 to 1024")
        job.priority = max(-1000, min(1000, int(priority)))
        job.also["p"] = priority
    if project is not None:
        if not NAME_PATTERN.fullmatch(project):
            raise errors.InvalidInput(f"-P: {project!r} is not a good name of a project")
        job.project = job.also["P"] = project
    job.retry = 1 if is_yes(given, "r") else None
