"""Which variables are passed to a job.

sbatch passes the whole environment to the job, and so does `qsub -V`. Here that would write every password and token of
the submitter into the run's spec, where every user who may see the run can read it. So a whole environment means:

- variables that locate programs and libraries, if the run executes on the machine that it was submitted from;
- variables that the script itself names, unless the name or the value looks like a secret;
- variables that are named explicitly (`--export=ALL,NAME`, `-v NAME`), whatever they look like.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from runyard.model.spec_values import VARIABLE

FINDS_PROGRAMS = re.compile(
    r"PATH|(\w+_)?LIBRARY_PATH|C(PLUS)?(_INCLUDE)?_?PATH|PKG_CONFIG_PATH|MANPATH|PYTHON(PATH|HOME)|VIRTUAL_ENV"
    r"|CONDA_\w+|MAMBA_\w+|LOADEDMODULES|_LMFILES_|MODULEPATH|MODULESHOME|LMOD_\w+|EB(ROOT|VERSION)\w+"
    r"|JAVA_HOME|R_LIBS\w*|JULIA_\w+|CUDA_(HOME|PATH|ROOT)|LANG|LC_\w+|TZ|HOME"
)
SECRET_NAME = re.compile(
    r"(?i)\w*(token|secret|passw|passphrase|cred|api_?key|access_?key|private|cookie)\w*|\w*(key|pass|pwd|auth)"
)
SECRET_VALUE = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
_TOOLS_OWN = re.compile(r"(SLURM|SBATCH|SGE|RUNYARD)_\w+|JOB_(ID|NAME)|NSLOTS|QUEUE|PE")
_OF_THE_SESSION = re.compile(
    r"TERM\w*|SHLVL|_|PWD|OLDPWD|SSH_\w+|XDG_\w+|DBUS_\w+|LS_COLORS|DISPLAY|HIST\w*|LESS\w*|EDITOR|VISUAL|PAGER|MAIL"
    r"|LOGNAME|USER|SHELL|PS\d|COLORTERM|LINES|COLUMNS|HOSTNAME|TMPDIR|GPG_\w+|WINDOWID|TMUX\w*|STY"
)
_NAMED = re.compile(
    r"ENV\s*[\[{(]\s*[\"']?(\w+)|\$\{?[!#]?(?!ENV\{)([A-Za-z_]\w*)"
    r"|environ(?:\.get)?\s*[\[(]\s*[\"'](\w+)[\"']|getenv\s*\(\s*[\"'](\w+)[\"']"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Carried:
    env: dict[str, str] = field(default_factory=dict)  # for the run, wherever it executes
    origin: dict[str, str] = field(default_factory=dict)  # for the run, on the machine of the submitter
    left: list[str] = field(default_factory=list)  # names that are not exported, though the script may need them
    secret: list[str] = field(default_factory=list)  # names that the script wants, and that look like secrets


def everything(environ: Mapping[str, str], script: str) -> Carried:
    """The part of the environment that may be sent."""
    carried = Carried()
    wanted = named_in(script)
    for name, value in environ.items():
        if not VARIABLE.fullmatch(name) or _TOOLS_OWN.fullmatch(name):
            continue
        if looks_secret(name, value):
            carried.secret.extend([name] if name in wanted else [])
        elif FINDS_PROGRAMS.fullmatch(name):
            carried.origin[name] = value
        elif name in wanted and not _OF_THE_SESSION.fullmatch(name):
            carried.env[name] = value
        elif not _OF_THE_SESSION.fullmatch(name):
            carried.left.append(name)
    return carried


def named_in(script: str) -> set[str]:
    """Variables that a script names, as shells, Python, Perl and Ruby write them."""
    return {next(filter(None, match.groups())) for match in _NAMED.finditer(script)}


def looks_secret(name: str, value: str) -> bool:
    return bool(SECRET_NAME.fullmatch(name) or SECRET_VALUE.search(value))


def by_name(items: Iterable[str], environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """`NAME=value` as it is, `NAME` with the submitter's value; and the names that have none here."""
    found: dict[str, str] = {}
    missing: list[str] = []
    for item in items:
        name, equals, value = item.partition("=")
        if equals:
            found[name] = value
        elif name in environ:
            found[name] = environ[name]
        else:
            missing.append(name)
    return found, missing
