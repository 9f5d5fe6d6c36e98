"""Slips in what a job asks for, and in what goes with it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from runyard.bridges.scripts import translate
from runyard.bridges.scripts.exports import looks_secret, named_in
from runyard.bridges.scripts.job import Here, Notice, ScriptJob
from runyard.bridges.scripts.mistakes import report
from runyard.bridges.scripts.script import Script
from runyard.model import units

_RESULTS = "OUTPUT_DIR"
_READS_RESULTS = re.compile(
    rf"environ\s*\[\s*[\"']{_RESULTS}[\"']\s*\](?!\s*=[^=])|[\"']{_RESULTS}[\"']\s+(?:not\s+)?in\s+(?:os\.)?environ"
)
_SETS_RESULTS = re.compile(rf"\b{_RESULTS}=|environ\s*\[\s*[\"']{_RESULTS}[\"']\s*\]\s*=[^=]")


def _shared_file(job: ScriptJob, here: Here) -> Iterator[Notice]:
    symbols = {"slurm": "%A_%a", "gridengine": "$JOB_ID.$TASK_ID"}[job.dialect]
    for flag, pattern in (("output", job.stdout), ("error", job.stderr)):
        if pattern and job.tasks and len(job.tasks.indexes) > 1 and translate.is_shared(job, pattern):
            yield Notice(
                text=f"all {len(job.tasks.indexes)} tasks append their {flag} to one file, line by line: {pattern}",
                fix=f"give each its own with {symbols} in the name",
            )


def _missing_directory(job: ScriptJob, here: Here) -> Iterator[Notice]:
    """Neither tool makes directories: the job could not start."""
    for pattern in dict.fromkeys(filter(None, (job.stdout, job.stderr))):
        directory = os.path.dirname(pattern)
        if os.path.isdir(job.cwd) and "%" not in directory and not os.path.isdir(directory):
            text = f"the output cannot be written: there is no directory {directory}"
            yield Notice(text=text, fix=f"mkdir -p {directory}")


def _path_as_name(job: ScriptJob, here: Here) -> Iterator[Notice]:
    if "/" in job.name:
        yield Notice(
            text=f"the job's name is a path; lists show only its beginning, {job.name[:8]!r}",
            fix=f"a short name tells more: --job-name={os.path.basename(job.name.rstrip('/'))}",
        )


def _left_behind(job: ScriptJob, here: Here) -> Iterator[Notice]:
    way = {"slurm": "--export=ALL,{}", "gridengine": "-v {}"}[job.dialect]
    carried = job.carried
    secret = [name for name in carried.secret if name not in carried.env]
    if secret:
        names = ",".join(secret)
        yield Notice(
            text=f"the script wants {names}, which looks like a secret and stays behind: a run's variables can be read",
            fix=f"let the script read it from a file, or store it with the run: {way.format(names)}",
        )
    for program, missed in _missed(job, here):
        text = f"{program} reads {', '.join(missed)}, which the script does not name: it stays behind"
        yield Notice(text=text, fix=way.format(",".join(missed)))
    for name, value in carried.env.items():
        if looks_secret(name, value):
            yield Notice(text=f"the value of {name} is stored with the run; all users who may see the run can read it")


def _missed(job: ScriptJob, here: Here) -> Iterator[tuple[str, list[str]]]:
    """Variables that are not passed but that a program of the job reads: most variables are needed by no job."""
    left = [name for name in job.carried.left if name not in job.carried.env]
    for program, text in _programs(job, here) if left else ():
        wanted = named_in(text)
        names = [name for name in left if name in wanted]
        if names:
            yield program, names


def _no_place_for_results(job: ScriptJob, here: Here) -> Iterator[Notice]:
    """Elsewhere a program that needs it would fail without it; here every run has such a directory."""
    if job.script is None or _RESULTS in job.carried.env or _SETS_RESULTS.search(job.script):
        return
    for name, text in _programs(job, here):
        if _READS_RESULTS.search(text) and not _SETS_RESULTS.search(text):
            yield Notice(
                text=f"{name} wants {_RESULTS}, and nothing sets it: here it is the run's own directory for results",
                fix=f"`runyard fetch` downloads them; to write them elsewhere: export {_RESULTS}=… in the script",
            )


def _programs(job: ScriptJob, here: Here) -> Iterator[tuple[str, str]]:
    """The script itself, or the programs in Python that it starts, where they can be read here."""
    script = Script(name=job.name, text=job.script or "")
    if not script.is_shell:
        yield "the script", script.text
        return
    for _, line in report.joined(script.lines):
        for word in report.words(line):
            path = re.sub(r"^(?:~|\$HOME|\$\{HOME\})(?=/)", lambda _: here.home, word)
            if path.endswith(".py") and os.path.isfile(os.path.join(job.cwd, path)):
                with open(os.path.join(job.cwd, path), encoding="utf-8", errors="replace") as file:
                    yield os.path.basename(path), file.read()


def _late_warning(job: ScriptJob, here: Here) -> Iterator[Notice]:
    """The grace within a time limit is a tenth of the limit at the most."""
    if job.stop and job.time and job.stop["grace"] > job.time / 10:
        before, limit, asked = map(units.show_duration, (job.time / 10, job.time, job.stop["grace"]))
        text = f"{job.stop['signal']} comes {before} before the limit of {limit}, not {asked}"
        yield Notice(text=text, fix="a longer time limit makes it earlier: it is a tenth of that at the most")


FINDERS: tuple[report.InJob, ...] = (
    _shared_file, _missing_directory, _path_as_name, _left_behind, _no_place_for_results, _late_warning,
)  # fmt: skip
