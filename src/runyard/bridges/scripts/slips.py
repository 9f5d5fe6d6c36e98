"""What is known to go wrong in scripts of this kind: each slip is found before it costs a run, and told with its fix.

A slip is a suspicion, not a proof: the job is accepted all the same.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator

from runyard.bridges.scripts import directives, translate
from runyard.bridges.scripts.exports import looks_secret
from runyard.bridges.scripts.job import Here, Job, Notice
from runyard.bridges.scripts.script import Script

_ASSIGNMENT = re.compile(r"^([A-Za-z_]\w*)=(?!\$\()(?:\"[^\"]*\"|'[^']*'|[^\s;&|]*)\s*(?:#.*)?$")
_EXPORTING = re.compile(r"\b(?:export|declare\s+-\w*x\w*|typeset\s+-\w*x\w*)\s+([^;&|\n]*)")
_BY_THE_SECOND = re.compile(r"%Y[\W_]?%m[\W_]?%d[\W_]{0,2}%H[\W_]?%M[\W_]?%S")
_OPTION_FIRST = re.compile(r"\s*-(-?\w|-\s)")
_SPACED = re.compile(r"#\s+SBATCH\s+-")
_PORT = re.compile(r"--(?:redis-)?port[= ](\d{4,5})\b")
_NODE_ADDRESS = re.compile(r"\bhostname\s+(?:--ip-address|-i)\b")
_GONE = {
    "ch-build": "ch-image build -t NAME FOLDER",
    "ch-builder2tar": "ch-convert NAME NAME.tar.gz",
    "ch-tar2dir": "ch-convert NAME.tar.gz FOLDER/NAME",
    "--redis-port": "--port",
    "ray.services.get_node_ip_address": "ray.util.get_node_ip_address",
}

Finder = Callable[[Script, Here], Iterator[Notice]]


def in_script(script: Script, here: Here) -> list[Notice]:
    finders = [*(_IN_SHELL if script.is_shell else ()), *_IN_ANY]
    return [notice for finder in finders for notice in finder(script, here)]


def in_job(job: Job) -> list[Notice]:
    finders = (_shared_file, _missing_directory, _path_as_name, _left_behind)
    return [notice for finder in finders for notice in finder(job)]


# --- the job ----------------------------------------------------------------------------------------------------


def _shared_file(job: Job) -> Iterator[Notice]:
    symbols = {"slurm": "%A_%a", "gridengine": "$JOB_ID.$TASK_ID"}[job.dialect]
    for flag, pattern in (("output", job.stdout), ("error", job.stderr)):
        if pattern and job.tasks and len(job.tasks.indexes) > 1 and translate.is_shared(job, pattern):
            yield Notice(
                text=f"all {len(job.tasks.indexes)} tasks append their {flag} to one file, line by line: {pattern}",
                fix=f"give each its own with {symbols} in the name",
            )


def _missing_directory(job: Job) -> Iterator[Notice]:
    """Neither tool makes directories: the job could not start."""
    for pattern in dict.fromkeys(filter(None, (job.stdout, job.stderr))):
        directory = os.path.dirname(pattern)
        if os.path.isdir(job.cwd) and "%" not in directory and not os.path.isdir(directory):
            text = f"the output cannot be written: there is no directory {directory}"
            yield Notice(text=text, fix=f"mkdir -p {directory}")


def _path_as_name(job: Job) -> Iterator[Notice]:
    if "/" in job.name:
        yield Notice(
            text=f"the job's name is a path; lists show only its beginning, {job.name[:8]!r}",
            fix=f"a short name tells more: --job-name={os.path.basename(job.name.rstrip('/'))}",
        )


def _left_behind(job: Job) -> Iterator[Notice]:
    way = {"slurm": "--export=ALL,{}", "gridengine": "-v {}"}[job.dialect]
    carried = job.carried
    secret = [name for name in carried.secret if name not in carried.env]
    if secret:
        names = ",".join(secret)
        yield Notice(
            text=f"the script wants {names}, which looks like a secret and stays behind: a run's variables can be read",
            fix=f"let the script read it from a file, or store it with the run: {way.format(names)}",
        )
    left = [name for name in carried.left if name not in carried.env]
    if left:
        shown = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
        yield Notice(text=f"variables that the script does not name stay behind: {shown}", fix=way.format(left[0]))
    for name, value in carried.env.items():
        if looks_secret(name, value):
            yield Notice(text=f"the value of {name} is stored with the run; whoever may see the run may read it")


# --- shell scripts ----------------------------------------------------------------------------------------------


def _late_directives(script: Script, here: Here) -> Iterator[Notice]:
    for number in directives.late_sbatch_lines(script.text):
        yield _at(number, "an #SBATCH line after the first command counts for nothing", "move it to the top")
    for number, line in enumerate(script.lines, 1):
        if _SPACED.match(line):
            yield _at(number, f"{line[:40]!r} is a comment to Slurm", "write #SBATCH without a blank")


def _broken_lines(script: Script, here: Here) -> Iterator[Notice]:
    """A command over several lines, without the backslashes that join them."""
    if "<<" in script.text:  # a text of its own may be there
        return
    before = ""
    for number, line in enumerate(script.lines, 1):
        goes_on = before and not before.startswith("#") and _OPTION_FIRST.match(line)
        if goes_on and not before.endswith("\\"):
            text = f"it begins with {line.split()[0]!r}, as if it went on with the line before"
            yield _at(number, text, "end the line before with \\")
        before = line.strip()


def _not_exported(script: Script, here: Here) -> Iterator[Notice]:
    """Set for nobody: the programs that the script starts do not see it."""
    if re.search(r"\bset\s+-\w*a|allexport", script.text):
        return
    exported = {word.partition("=")[0] for match in _EXPORTING.finditer(script.text) for word in match[1].split()}
    for number, line in enumerate(script.lines, 1):
        match = _ASSIGNMENT.match(line.strip())
        if match and match[1] not in exported and not re.search(rf"\$\{{?{match[1]}\b", script.text):
            text = f"{match[1]} is set, but not exported: the programs that the script starts do not see it"
            yield _at(number, text, f"write export {line.strip()}")


def _containers(script: Script, here: Here) -> Iterator[Notice]:
    for number, words in _commands(script, "ch-run"):
        if "--set-env" not in words:
            yield _at(number, "ch-run does not apply the ENV of the image", "add --set-env without a value")
        command = [word for word in words[1:] if not word.startswith("-")]
        if "--" in words and len(command) > 1 and words.index("--") > words.index(command[1]):
            yield _at(number, "the -- is handed to the program", "write ch-run [options] IMAGE -- COMMAND …")
        for word in words:
            name, _, path = word.partition("=")
            if name == "--set-env" and path:
                yield from _in_env_file(os.path.join(here.directory, path))


def _in_env_file(path: str) -> Iterator[Notice]:
    """ch-run takes each line as it stands."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return
    for number, line in enumerate(lines, 1):
        where = f"{os.path.basename(path)} line {number}"
        if line.startswith(("#", "export ")) or (line.strip() and "=" not in line):
            yield Notice(text=f"{where}: ch-run knows neither comments nor export", fix="leave only NAME=value")
        elif '"' in line.partition("=")[2]:
            yield Notice(text=f"{where}: ch-run keeps the double quotes", fix="remove them")


def _copied_directory(script: Script, here: Here) -> Iterator[Notice]:
    for number, words in _commands(script, "cp"):
        options = [word for word in words[1:] if word.startswith("-")]
        if any(re.match(r"-\w*[rRa]|--(recursive|archive)", option) for option in options):
            continue
        for source in [word for word in words[1:] if not word.startswith("-")][:-1]:
            if os.path.isdir(os.path.join(here.directory, source)):
                yield _at(number, f"cp leaves out {source}, which is a directory", f"write cp -r {source} …")


def _ray(script: Script, here: Here) -> Iterator[Notice]:
    own_port = "take one by the job: $((20000 + SLURM_JOB_ID % 20000))"
    for number, line in enumerate(script.lines, 1):
        port = _PORT.search(line)
        if port and "ray" in script.text:
            yield _at(number, f"two jobs on one node cannot both have port {port[1]}", own_port)
        if _NODE_ADDRESS.search(line):
            yield _at(number, "hostname --ip-address may print several addresses", "take the first: | cut -d ' ' -f 1")


# --- scripts of any kind ----------------------------------------------------------------------------------------


def _gone_words(script: Script, here: Here) -> Iterator[Notice]:
    for number, line in enumerate(script.lines, 1):
        for old, new in _GONE.items():
            if re.search(rf"(?<![\w-]){re.escape(old)}(?![\w-])", line):
                yield _at(number, f"current versions have no {old} any more", f"write {new}")


def _same_second(script: Script, here: Here) -> Iterator[Notice]:
    for number, line in enumerate(script.lines, 1):
        if _BY_THE_SECOND.search(line):
            text = "runs that begin in the same second share what is named by the second"
            yield _at(number, text, "add the id of the run to the name: RUNYARD_RUN_ID")


def _afs(script: Script, here: Here) -> Iterator[Notice]:
    for number, line in enumerate(script.lines, 1):
        if re.search(r"(?<![\w.])/afs/", line) and not os.path.isdir("/afs"):
            yield _at(number, "jobs do not see AFS", "copy what is needed to a directory that they see, first")


def _at(number: int, text: str, fix: str) -> Notice:
    return Notice(text=f"line {number} of the script: {text}", fix=fix)


def _commands(script: Script, program: str) -> Iterator[tuple[int, list[str]]]:
    """Each use of a program with its words, lines that backslashes join as one."""
    joined, begun = "", 0
    for number, line in enumerate(script.lines, 1):
        begun = begun or number
        joined += line.removesuffix("\\")
        if line.endswith("\\"):
            continue
        words = _words(joined)
        if words and os.path.basename(words[0]) == program:
            yield begun, words
        joined, begun = "", 0


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []


_IN_SHELL: tuple[Finder, ...] = (
    _late_directives, _broken_lines, _not_exported, _containers, _copied_directory, _ray,
)  # fmt: skip
_IN_ANY: tuple[Finder, ...] = (_gone_words, _same_second, _afs)
