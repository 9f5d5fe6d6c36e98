"""One job as a script and its flags describe it, in the syntax of either tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runyard.bridges.scripts.arrays import ArrayTasks
from runyard.bridges.scripts.exports import Carried
from runyard.bridges.scripts.jobs import Dependency


@dataclass(frozen=True, kw_only=True, slots=True)
class Here:
    """Who submits, and from where."""

    directory: str
    home: str
    user: str
    host: str
    environ: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Notice:
    """Something that the user should know; the job is accepted all the same."""

    text: str
    fix: str = ""


@dataclass(kw_only=True, slots=True)
class ScriptJob:
    dialect: str  # slurm, gridengine
    name: str
    script: str | None  # None: there is only a command
    command: list[str] | str  # the script's arguments, or the command: words, or a text for the shell
    cwd: str
    carried: Carried = field(default_factory=Carried)
    variables: dict[str, str] = field(default_factory=dict)  # the tool's own, as far as the submitter knows them
    tasks: ArrayTasks | None = None
    stdout: str = ""  # patterns, see `patterns`
    stderr: str | None = None  # None: where stdout goes
    append: bool = False  # the tool adds to a file that is there already
    processes: int = 1  # that the job means to start by itself; each gets `cpus`
    nodes: int = 1
    cpus: int = 1
    memory: int | None = None  # of each node, and so the gpus
    gpus: int = 0
    gpu_type: str | None = None
    time: int | None = None
    queue: str | None = None  # or partition
    site: str | None = None
    project: str | None = None
    native: dict[str, str] = field(default_factory=dict)  # words for a scheduler of this dialect
    also: dict[str, str] = field(default_factory=dict)  # the same, of flags that mean something everywhere
    dependencies: list[Dependency] = field(default_factory=list)
    priority: int | None = None
    retry: int | None = None
    stop: dict[str, Any] | None = None
    notices: list[Notice] = field(default_factory=list)

    def notice(self, text: str, fix: str = "") -> None:
        self.notices.append(Notice(text=text, fix=fix))
