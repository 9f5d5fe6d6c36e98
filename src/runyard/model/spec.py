"""A run as it is handed in: one schema for YAML files, JSON over HTTP and Python keywords."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runyard import errors
from runyard.model import command, fields, globs, input_file, keep, nodes, output_file, passing, signals, staged
from runyard.model.array import Array
from runyard.model.checkpoints import Checkpoint
from runyard.model.input_file import InputFile
from runyard.model.metric_patterns import MetricPatterns
from runyard.model.nodes import NodeChoice
from runyard.model.python_env import PythonEnv
from runyard.model.resources import Resources
from runyard.model.staged import Code, Data
from runyard.model.states import FAILURES, Reason

MOST_RUNS = (1 << 31) - 1  # in one sweep
LONGEST_TEXT = 1 << 20  # bytes of one argument or value; Linux allows 128 KiB for one argument of execve
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RETRY_ON = (Reason.LOST, Reason.NODE_LOST, Reason.PREEMPTED)
OPEN_MODES = (output_file.TRUNCATE, output_file.APPEND)
DIALECTS = ("slurm", "gridengine")


@dataclass(frozen=True, kw_only=True, slots=True)
class Retry:
    """How often a run is tried again by itself, and after which endings."""

    max: int = 0
    on: tuple[Reason, ...] = RETRY_ON

    @classmethod
    def parse(cls, value: object) -> Retry:
        if isinstance(value, int):
            value = {"max": value}
        given = fields.mapping(value, "retry", ("max", "on"))
        on = given.get("on") or list(RETRY_ON)
        names = [on] if isinstance(on, str) else fields.texts(on, "retry.on", 100)
        reasons = [fields.one_of(name, "retry.on", FAILURES) for name in names]
        return cls(max=fields.integer(given.get("max", 1), "retry.max", 0, 100), on=tuple(map(Reason, reasons)))

    def to_json(self) -> dict[str, Any]:
        return {"max": self.max, "on": list(self.on)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Stop:
    """How a run is asked to stop before it is made to: the signal, and the seconds it gets."""

    signal: str = "TERM"
    grace: int = 10

    @classmethod
    def parse(cls, value: object) -> Stop:
        given = fields.mapping(value, "stop", ("signal", "grace"))
        return cls(
            signal=signals.parse(given.get("signal", "TERM"), "stop.signal"),
            grace=signals.parse_grace(given.get("grace", 10), "stop.grace"),
        )

    def to_json(self) -> dict[str, Any]:
        return {"signal": self.signal, "grace": self.grace}


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSpec:
    """One run. Build it with `parse`, which checks everything that came from outside."""

    command: list[str] | str  # an argument vector, or one text for /bin/sh -c
    script: str | None = None  # a program's text; `command` then is the list of its arguments
    project: str = "default"
    name: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    params_as: str | None = None  # how they are added to the command, see model.passing
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None  # None: the staged code, or a fresh directory of the attempt
    code: Code | None = None  # the snapshot that it runs in
    data: tuple[Data, ...] = ()  # folders that it finds below $RUNYARD_DATA
    python_env: PythonEnv = field(default_factory=PythonEnv)
    seed: int | None = None
    resources: Resources = field(default_factory=Resources)
    inputs: tuple[InputFile, ...] = ()  # brought into $RUNYARD_INPUTS before it starts
    outputs: tuple[str, ...] = ("**",)  # globs below OUTPUT_DIR that come back
    metrics: MetricPatterns = field(default_factory=MetricPatterns)  # what is read from the lines that it prints
    keep: str = ""  # what stays at the site after the end, see model.keep; empty: what the site says
    split_output: bool = False  # keep stdout and stderr in files of their own beside the merged log
    stdout: str | None = None  # a file of the user's that standard output goes to, see output_file
    stderr: str | None = None  # the same for standard error; None: with standard output
    open_mode: str = output_file.TRUNCATE
    site: str | None = None  # None: any site that fits
    node: tuple[str, ...] = ()  # of the site: any of these; see NodeChoice
    exclude: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)  # for the site's scheduler
    priority: int = 0  # higher goes first
    after: tuple[int, ...] = ()  # runs that must have succeeded
    after_any: tuple[int, ...] = ()  # runs that must have ended, however
    index: int | None = None  # its number in its sweep, from 1
    array: Array | None = None
    dialect: str | None = None  # whose variables it finds, beside runyard's own
    retry: Retry = field(default_factory=Retry)
    stop: Stop = field(default_factory=Stop)
    checkpoint: Checkpoint | None = None
    tags: tuple[str, ...] = ()
    idempotency_key: str | None = None
    # {host, env, run}: defaults where the run executes on that host, and the run that it was made again from
    origin: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, value: object) -> RunSpec:
        given = fields.mapping(value, "run", _PARSERS)
        has_script = given.get("script") is not None
        if given.get("command") is None or not (given["command"] or has_script):
            raise errors.InvalidInput("run: no command", "say what to run, such as: -- python train.py")
        parsers = {**_PARSERS, "command": _arguments} if has_script else _PARSERS
        spec = cls(**{name: parsers[name](item) for name, item in given.items() if item is not None})
        spec.argv()
        return spec._with_streams_apart()

    @property
    def choice(self) -> NodeChoice:
        return NodeChoice(node=self.node, exclude=self.exclude, labels=self.labels)

    def argv(self) -> list[str]:
        """The words to execute, parameters filled in; raises when a `{name}` has no parameter."""
        return command.argv_of(self._numbered())

    @property
    def number(self) -> int:
        """In its sweep or array; 1 for a run that is alone."""
        return command.number_of(self._numbered())

    def _numbered(self) -> dict[str, Any]:
        """What its command follows from."""
        return {
            "command": self.command, "params": self.params, "params_as": self.params_as, "index": self.index,
            "array": {"index": self.array.index} if self.array is not None else None, "dialect": self.dialect,
        }  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """The shortest mapping that parses to the same spec."""
        shown: dict[str, Any] = {}
        for name, default in _DEFAULTS.items():
            value = getattr(self, name)
            if value != default:
                shown[name] = _plain(value)
        return shown

    def _with_streams_apart(self) -> RunSpec:
        """Two files that others write to are copied from two of the run's own."""
        apart = self.open_mode == output_file.APPEND and self.stderr is not None
        return self.evolve(split_output=True) if apart and not self.split_output else self

    def evolve(self, **changes: Any) -> RunSpec:
        return dataclasses.replace(self, **changes)


def _plain(value: Any) -> Any:
    if hasattr(value, "to_json"):
        return value.to_json()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _command(value: object) -> list[str] | str:
    if isinstance(value, str):
        return fields.text(value, "command", LONGEST_TEXT, raw=True)
    words = fields.texts(value, "command", LONGEST_TEXT, raw=True)
    if not words or not words[0]:
        raise errors.InvalidInput("command: the first word is empty", "name the program to run")
    return words


def _arguments(value: object) -> list[str]:
    if isinstance(value, str):
        raise errors.InvalidInput("command: with a script it is the list of its arguments", "use [] for none")
    return fields.texts(value, "command", LONGEST_TEXT, raw=True)


def name_text(value: object, where: str) -> str:
    """A name that may become a part of a path or a label: letters, digits, dot, dash, underscore."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise errors.InvalidInput(
            f"{where}: {value!r} is not a good name",
            "use up to 100 letters, digits, '.', '_', '-', starting with a letter or digit",
        )
    return value


def params_mapping(value: object) -> dict[str, Any]:
    """Parameters: any JSON values by name, of bounded size."""
    if not isinstance(value, Mapping):
        raise errors.InvalidInput("params: must be a mapping of names to values")
    for key in value:
        fields.text(key, "params", 200, raw=True)
    try:
        text = json.dumps(value, allow_nan=True)
    except (TypeError, ValueError) as error:
        raise errors.InvalidInput(
            f"params: {error}", "use texts, numbers, true, false, null, lists and mappings"
        ) from None
    fields.at_most(len(text), "params", LONGEST_TEXT)
    return dict(value)


def env_mapping(value: object) -> dict[str, str]:
    """Environment variables: good names, any text."""
    if not isinstance(value, Mapping):
        raise errors.InvalidInput("env: must be a mapping of names to texts")
    for key, item in value.items():
        if not isinstance(key, str) or not VARIABLE.fullmatch(key):
            raise errors.InvalidInput(f"env: {key!r} is not a variable name", "use letters, digits and '_'")
        fields.text(item, f"env.{key}", LONGEST_TEXT, empty=True, raw=True)
    return dict(value)


def options_mapping(value: object) -> dict[str, str]:
    """Options for a scheduler: names and texts, in its own words."""
    if not isinstance(value, Mapping):
        raise errors.InvalidInput("options: must be a mapping of names to texts")
    return {
        fields.text(name, "options", 100): fields.text(str(item), f"options.{name}", 4096, empty=True)
        for name, item in value.items()
    }


def _cwd(value: object) -> str:
    path = fields.text(value, "cwd", 4096, raw=True)
    if not path.startswith("/"):
        raise errors.InvalidInput(f"cwd: {path!r} is not an absolute path", "start it with /")
    return path


def _seed(value: object) -> int:
    return fields.integer(value, "seed", 0, (1 << 63) - 1)


def _runs(value: object, where: str) -> tuple[int, ...]:
    items = value if isinstance(value, (list, tuple)) else [value]
    return tuple(dict.fromkeys(fields.integer(item, where, 1, 1 << 62) for item in items))


def _tags(value: object) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else fields.texts(value, "tags", 100)
    return tuple(dict.fromkeys(name_text(item, "tags") for item in items))


def _origin(value: object) -> dict[str, Any]:
    given = fields.mapping(value, "origin", ("host", "env", "run"))
    again = {} if given.get("run") is None else {"run": fields.integer(given["run"], "origin.run", 1, 1 << 62)}
    return {
        "host": fields.text(given.get("host", ""), "origin.host", 300, empty=True),
        "env": env_mapping(given.get("env", {})),
        **again,
    }


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "command": _command,
    "script": lambda value: fields.text(value, "script", LONGEST_TEXT, raw=True),
    "project": lambda value: name_text(value, "project"),
    "name": lambda value: fields.text(value, "name", 200, empty=True),
    "params": params_mapping,
    "params_as": lambda value: fields.one_of(value, "params_as", passing.WAYS),
    "env": env_mapping,
    "cwd": _cwd,
    "code": Code.parse,
    "data": staged.parse_data,
    "python_env": PythonEnv.parse,
    "seed": _seed,
    "resources": Resources.parse,
    "inputs": input_file.parse,
    "outputs": lambda value: globs.parse(value, "outputs"),
    "metrics": MetricPatterns.parse,
    "keep": keep.checked,
    "split_output": lambda value: fields.boolean(value, "split_output"),
    "stdout": lambda value: output_file.parse(value, "stdout"),
    "stderr": lambda value: output_file.parse(value, "stderr"),
    "open_mode": lambda value: fields.one_of(value, "open_mode", OPEN_MODES),
    "site": lambda value: name_text(value, "site"),
    "node": lambda value: nodes.parse_names(value, "node"),
    "exclude": lambda value: nodes.parse_names(value, "exclude"),
    "labels": lambda value: nodes.parse_labels(value, "labels"),
    "priority": lambda value: fields.integer(value, "priority", -1000, 1000),
    "after": lambda value: _runs(value, "after"),
    "after_any": lambda value: _runs(value, "after_any"),
    "index": lambda value: fields.integer(value, "index", 1, MOST_RUNS),
    "array": Array.parse,
    "dialect": lambda value: fields.one_of(value, "dialect", DIALECTS),
    "retry": Retry.parse,
    "stop": Stop.parse,
    "checkpoint": Checkpoint.parse,
    "options": options_mapping,
    "tags": _tags,
    "idempotency_key": lambda value: fields.text(value, "idempotency_key", 200),
    "origin": _origin,
}
FIELDS = tuple(_PARSERS)

_DEFAULTS: dict[str, Any] = {
    item.name: (
        None
        if item.name == "command"
        else item.default_factory()
        if item.default_factory is not dataclasses.MISSING
        else item.default
    )
    for item in dataclasses.fields(RunSpec)
}
