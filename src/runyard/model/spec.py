"""A run as it is submitted: one declaration for YAML files, JSON over HTTP, Python keywords and the command line."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

from runyard.model import command, globs, input_file, keep, nodes, output_file, parameter_passing, spec_values, staged
from runyard.model.array import Array
from runyard.model.checkpoints import Checkpoint
from runyard.model.declaration import Declared, Diff, Makes, Option, Reads, View, field, names, read
from runyard.model.input_file import InputFile
from runyard.model.json_schema import TEXTS, text
from runyard.model.metric_patterns import MetricPatterns
from runyard.model.nodes import NodeChoice
from runyard.model.python_env import PythonEnv
from runyard.model.resources import Resources
from runyard.model.spec_values import LONGEST_TEXT, NAME, NAMES, RUN_NUMBERS
from runyard.model.staged import Code, Data
from runyard.model.states import FAILURES, Reason
from runyard.model.values import Checked, Choice, Flag, Grace, OneOrMany, Part, Path, Signal, Switch, Text, Whole

MOST_RUNS = (1 << 31) - 1  # in one sweep
RETRY_ON = (Reason.LOST, Reason.NODE_LOST, Reason.PREEMPTED)
OPEN_MODES = (output_file.TRUNCATE, output_file.APPEND)
DIALECTS = ("slurm", "gridengine")
_OUTPUT_FILE = Checked(output_file.parse, text(pattern="^/", maxLength=4096))
_NAMES_OF = "absolute; %j is the run's id, %A its array's, %N the node"


@dataclass(frozen=True, kw_only=True, slots=True)
class Retry(Declared):
    """How often a run is retried automatically, and after which endings."""

    place: ClassVar[str] = "retry"
    short: ClassVar[str] = "max"

    max: int = field(
        Whole(0, 100), default=0, help="Maximum number of automatic retries",
        option=Option("--retry", "N", "Retry up to N times after failures of the machine."),
    )  # fmt: skip
    on: tuple[Reason, ...] = field(OneOrMany(Choice(FAILURES), Reason), default=RETRY_ON, help="After which endings")

    @classmethod
    def parse(cls, value: object, where: str = "") -> Retry:
        """`on` alone means one retry."""
        found = read(cls, value, where)
        return cls(**{"max": 1, **found, "on": found.get("on") or RETRY_ON})


@dataclass(frozen=True, kw_only=True, slots=True)
class Stop(Declared):
    """How a run is stopped: the signal, and the seconds until it is killed."""

    place: ClassVar[str] = "stop"

    signal: str = field(
        Signal(), default="TERM", help="Signal that requests a stop", option=Option("--stop-signal", "SIG")
    )
    grace: int = field(
        Grace(), default=10, help="Time between the stop signal and SIGKILL",
        option=Option("--grace", "DURATION", "Time between the stop signal and SIGKILL (default 10s)."),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSpec(Declared):
    """One run. Build it with `parse`, which validates untrusted input."""

    place: ClassVar[str] = "run"
    root: ClassVar[bool] = True
    brief: ClassVar[bool] = True
    about: ClassVar[str] = "One run as it is submitted."

    command: list[str] | str = field(
        spec_values.COMMAND, missing=spec_values.NO_COMMAND, recipe=True, diff=Diff.COMMAND, makes=Makes.COMMAND,
        help="A list of words, or one string for /bin/sh -c; with a script, its arguments. With params, {name} is "
             "replaced by a parameter",
    )  # fmt: skip
    script: str | None = field(
        Text(LONGEST_TEXT, raw=True), default=None, diff=Diff.APART, makes=Makes.COMMAND,
        help="Text of a program, with a #! line or for /bin/sh; `command` is the list of its arguments",
    )  # fmt: skip
    project: str = field(
        NAME, default="default", recipe=True, diff=Diff.LABELS, help="Project of the run",
        option=Option("--project", "NAME", "Project of the run."),
    )  # fmt: skip
    name: str = field(
        Text(200, empty=True), default="", recipe=True, diff=Diff.LABELS, help="Name of the run, shown in lists",
        option=Option("--name", "TEXT", alone=True),
    )  # fmt: skip
    params: dict[str, Any] = field(
        spec_values.PARAMS, make=dict, diff=Diff.APART, help="Parameters, also in the JSON file $RUNYARD_PARAMS",
        rerun="Changed parameters; `model.depth` is a nested one",
        option=Option(
            "-p --param", "K=V", "Parameter for {K} in the command; JSON or text, a.b=1 nests. Repeatable.",
            Reads.PAIRS, alone=True,
        ),
    )  # fmt: skip
    params_as: str | None = field(
        Choice(parameter_passing.WAYS), default=None, recipe=True, makes=Makes.COMMAND,
        help="How to pass parameters that the command does not use: added to it, or to the environment",
        option=Option(
            "--params-as", "HOW",
            "Pass parameters that the command does not use: flags (--lr 0.1), hydra (lr=0.1), json (one argument), "
            "env (PARAM_LR).",
        ),
    )  # fmt: skip
    resources: Resources = field(Part(Resources), make=Resources, recipe=True, diff=Diff.APART)
    env: dict[str, str] = field(
        spec_values.ENV, make=dict, recipe=True, diff=Diff.APART, makes=Makes.COMMAND, help="Environment variables",
        option=Option("-e --env", "K[=V]", "Set a variable, or pass on its current value. Repeatable.", Reads.PAIRS),
    )  # fmt: skip
    cwd: str | None = field(
        Path(), default=None, recipe=True, diff=Diff.COMMAND, makes=Makes.COMMAND,
        drop_box="the run executes in its uploaded code",
        help="Working directory, absolute (default: the copy of the code, or an empty directory)",
        option=Option("--cwd", "DIR", "Working directory (default: the copy of the code, or the current one)."),
    )  # fmt: skip
    code: Code | None = field(
        Part(Code), default=None, recipe=True, diff=Diff.APART, makes=Makes.CONTENT, staged=True,
        option=Option(
            "--code", "PATH",
            "Run in a snapshot of this directory (default in a git checkout: the current one). Repeatable.", Reads.LIST,
        ),
    )  # fmt: skip
    data: tuple[Data, ...] = field(
        Checked(staged.parse_data, staged.FOLDERS), default=(), recipe=True, diff=Diff.APART, makes=Makes.CONTENT,
        staged=True, help="Directories below $RUNYARD_DATA",
        option=Option(
            "--data", "[NAME=]DIR",
            "Upload a directory, or use one of the site: /path/at/the/site. Repeatable.", Reads.LIST,
        ),
    )  # fmt: skip
    python_env: PythonEnv = field(
        Part(PythonEnv, inline=True), make=PythonEnv, recipe=True, diff=Diff.APART, makes=Makes.CONTENT,
        help="Python environment: record, sync, none, conda:NAME or conda:/path; or built from a file",
        rerun="Build the recorded Python environment at the site",
        option=Option(
            "--python-env", "WHICH",
            "Python environment: record the current packages (default), sync: rebuild them at the site, none, "
            "conda:NAME or conda:/path of the site, or a requirements.txt or environment.yml to build there.",
        ),
    )  # fmt: skip
    seed: int | None = field(
        Whole(0, (1 << 63) - 1), default=None, diff=Diff.APART, help="Random seed, available as $RUNYARD_SEED",
        rerun="Change the random seed", option=Option("--seed", "N", alone=True),
    )  # fmt: skip
    inputs: tuple[InputFile, ...] = field(
        Checked(input_file.parse, input_file.SCHEMA), default=(), recipe=True, diff=Diff.APART, makes=Makes.CONTENT,
        staged=True, help="Files below $RUNYARD_INPUTS",
        option=Option(
            "--input", "URL[=NAME][,secret=S]",
            "Fetch a file into $RUNYARD_INPUTS at the site, with one of its secrets. Repeatable.", Reads.FILES,
        ),
    )  # fmt: skip
    outputs: tuple[str, ...] = field(
        Checked(globs.parse, {**TEXTS, "default": ["**"]}), default=("**",), recipe=True,
        help="Files below $OUTPUT_DIR to upload",
        option=Option("--output", "GLOB", "Files of OUTPUT_DIR to upload (default: all). Repeatable.", Reads.LIST),
    )  # fmt: skip
    metrics: MetricPatterns = field(Part(MetricPatterns, inline=True), make=MetricPatterns, recipe=True)
    keep: str = field(
        Checked(keep.checked, text()), default="", recipe=True, diff=Diff.LABELS,
        help="Files to keep at the site after the end: none, unsaved, outputs, failed:3d, all:7d (default: the site's)",
        option=Option(
            "--keep", "WHAT[:TIME]",
            "Files to keep at the site after the end: none, unsaved (default), outputs, failed:3d, all:7d.",
        ),
    )  # fmt: skip
    split_output: bool = field(
        Flag(), default=False, recipe=True, help="Store stdout and stderr separately as well",
        option=Option("--split-output", reads=Reads.FLAG),
    )  # fmt: skip
    stdout: str | None = field(
        _OUTPUT_FILE, default=None, drop_box="its log is beside the bundle",
        help=f"A file for standard output: {_NAMES_OF}",
    )  # fmt: skip
    stderr: str | None = field(
        _OUTPUT_FILE, default=None, drop_box="its log is beside the bundle",
        help=f"A file for standard error (default: with standard output): {_NAMES_OF}",
    )  # fmt: skip
    open_mode: str = field(
        Choice(OPEN_MODES), default=output_file.TRUNCATE, help="append: other runs write to these files as well"
    )
    site: str | None = field(
        NAME, default=None, recipe=True, diff=Diff.SITE, help="Site to run at (default: any that fits)",
        rerun="Change the site", option=Option("--site", "NAME", "Run at this site only."),
    )  # fmt: skip
    node: tuple[str, ...] = field(
        Checked(nodes.parse_names, nodes.NODES_SCHEMA), default=(), recipe=True, diff=Diff.SITE, alike=True,
        help="Node of the site, or several to choose from",
        option=Option("--node", "NAME", "Run on this node of the site, or on any of several.", Reads.COMMAS),
    )  # fmt: skip
    exclude: tuple[str, ...] = field(
        Checked(nodes.parse_names, nodes.NODES_SCHEMA), default=(), recipe=True, diff=Diff.SITE, alike=True,
        help="Nodes that it must not use",
        option=Option("--exclude", "NAME", "Do not run on this node. Repeatable, or with commas.", Reads.COMMAS),
    )  # fmt: skip
    labels: tuple[str, ...] = field(
        Checked(nodes.parse_labels, nodes.LABELS_SCHEMA), default=(), recipe=True, diff=Diff.SITE, alike=True,
        help="Labels that the node must have, such as fast or rack=a",
        option=Option(
            "--label", "K[=V]", "Run only on nodes with this label, such as fast or rack=a. Repeatable.", Reads.COMMAS
        ),
    )  # fmt: skip
    options: dict[str, str] = field(
        spec_values.OPTIONS, make=dict, recipe=True, diff=Diff.SITE, alike=True,
        help="Options of the site's scheduler, under its own names",
        option=Option("--option", "K=V", "Option for the site's scheduler. Repeatable.", Reads.PAIRS),
    )  # fmt: skip
    priority: int = field(
        Whole(-1000, 1000), default=0, recipe=True, diff=Diff.LABELS, help="Priority; higher starts first",
        option=Option("--priority", "N"),
    )  # fmt: skip
    after: tuple[int, ...] = field(
        RUN_NUMBERS, default=(), diff=Diff.LABELS, help="Runs that must succeed first",
        option=Option("--after", "RUN", "Start after these runs have succeeded. Repeatable.", Reads.LIST),
    )  # fmt: skip
    after_any: tuple[int, ...] = field(RUN_NUMBERS, default=(), diff=Diff.LABELS, help="Runs that must end first")
    index: int | None = field(
        Whole(1, MOST_RUNS), default=None, sweep=False,
        help="Index in its sweep: {index} in the command, $RUNYARD_INDEX",
    )  # fmt: skip
    array: Array | None = field(Part(Array), default=None, sweep=False, diff=Diff.APART)
    dialect: str | None = field(
        Choice(DIALECTS), default=None, help="Scheduler to emulate in variables such as SLURM_JOB_ID or JOB_ID"
    )
    retry: Retry = field(Part(Retry), make=Retry, recipe=True, diff=Diff.LABELS)
    stop: Stop = field(Part(Stop), make=Stop, recipe=True)
    checkpoint: Checkpoint | None = field(
        Switch(Checkpoint), default=None, recipe=True, alike=True,
        option=Option(
            "--checkpoint", "",
            "Send SIGUSR1 a minute before the time limit, and continue in another attempt, then and after a "
            "preemption or the loss of the node.", Reads.FLAG,
        ),
    )  # fmt: skip
    tags: tuple[str, ...] = field(
        NAMES, default=(), recipe=True, diff=Diff.LABELS, help="Tags to filter by",
        option=Option("--tag", "TAG", "Tag to filter by. Repeatable.", Reads.LIST),
    )  # fmt: skip
    idempotency_key: str | None = field(
        Text(200), default=None, sweep=False, diff=Diff.APART, drop_box="the bundle's own name does that",
        help="Submitting again with this key returns the first run",
        option=Option("--idempotency-key", "TEXT", alone=True),
    )  # fmt: skip
    origin: dict[str, Any] = field(
        spec_values.ORIGIN, make=dict, diff=Diff.APART, drop_box="the drop box sets it",
        help="Host and environment of the submitter, the default if the run executes on that host; and the run that "
             "it is a copy of",
    )  # fmt: skip

    @classmethod
    def parse(cls, value: object, where: str = "") -> RunSpec:
        given = read(cls, value, where)
        check = spec_values.check_arguments if "script" in given else spec_values.check_program
        check(given["command"])
        spec = cls(**given)
        spec.argv()
        return spec._with_streams_apart()

    @property
    def choice(self) -> NodeChoice:
        return NodeChoice(node=self.node, exclude=self.exclude, labels=self.labels)

    def argv(self) -> list[str]:
        """The words to execute, parameters filled in; raises if a `{name}` has no parameter."""
        return command.argv_of(View(self))

    @property
    def number(self) -> int:
        """Its index in its sweep or array; 1 for a single run."""
        return command.number_of(View(self))

    def _with_streams_apart(self) -> RunSpec:
        """Files in append mode are copied from stdout and stderr of the run, which must then be separate."""
        apart = self.open_mode == output_file.APPEND and self.stderr is not None
        return self.evolve(split_output=True) if apart and not self.split_output else self

    def evolve(self, **changes: Any) -> RunSpec:
        return dataclasses.replace(self, **changes)


FIELDS = names(RunSpec)
STAGED = names(RunSpec, lambda one: one.staged)
EXAMPLE = {
    "command": ["python", "train.py", "--lr", "{lr}"],
    "params": {"lr": 0.1},
    "resources": {"cpus": 2, "memory": "4G"},
}
