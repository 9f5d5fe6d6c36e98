"""A sweep as it is submitted: the fields of a run, and what is varied. The same in YAML, JSON and Python keywords."""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from runyard import errors
from runyard.model import command, fields, spec_values, template
from runyard.model.declaration import (
    Beside,
    Declared,
    Field,
    Makes,
    Option,
    Reads,
    declared,
    field,
    names,
    plain,
    read,
    schema,
)
from runyard.model.json_schema import ANYTHING, Schema, listed, one_of, record
from runyard.model.spec import RunSpec, Stop
from runyard.model.sweep import sampling
from runyard.model.sweep import space as spaces
from runyard.model.sweep.objective import SHORT, Objective
from runyard.model.sweep.space import MOST, Params, Space
from runyard.model.sweep.stopping import Rule, Stopping
from runyard.model.values import Checked, Choice, Flag, Part, Text, Whole

LONGEST_NAME = 150  # characters
MOST_REPS = 1000
PARALLEL = 8  # trials at a time of a method that learns from those before, unless the sweep sets it
LIST = "param2val_list"  # what the list of configurations is called elsewhere
BUILT_IN = (command.INDEX,)  # what a command may name beside parameters


class Method(enum.StrEnum):
    GRID = "grid"  # every combination, or every configuration that is listed
    RANDOM = "random"
    QMC = "qmc"  # spread evenly
    TPE = "tpe"  # these look at the results of earlier trials
    GP = "gp"
    CMAES = "cmaes"

    @property
    def learns(self) -> bool:
        return self in (Method.TPE, Method.GP, Method.CMAES)


def _configurations(value: object, where: str) -> tuple[Params, ...]:
    if not isinstance(value, (list, tuple)) or not value:
        raise errors.InvalidInput(
            f"{where}: must be a list of parameters, with one at least", "such as [{lr: 0.1}, {lr: 0.01}]"
        )
    fields.at_most(len(value), where, MOST)
    seen: dict[str, int] = {}
    found = []
    for index, item in enumerate(value):
        params = spec_values.params_mapping(item, f"{where}[{index}]")
        first = seen.setdefault(spaces.identity(params), index)
        if first != index:
            raise errors.InvalidInput(f"{where}[{index}]: is the same as {where}[{first}]", "use reps")
        found.append(params)
    return tuple(found)


CONFIGURATIONS = Checked(_configurations, listed(ANYTHING, minItems=1))
STOP: Schema = {
    "anyOf": [one_of(Rule), record({**schema(Stopping)["properties"], **schema(Stop)["properties"]}, required=[])],
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepSpec(Declared):
    """One sweep. Build it with `parse`, which checks everything that came from outside."""

    place: ClassVar[str] = "sweep"
    root: ClassVar[bool] = True
    about: ClassVar[str] = "Many runs of one command. The further fields are those of a run."

    # What all its runs share, without any parameters.
    run: RunSpec = field(Beside(RunSpec, lambda one: one.sweep))
    name: str = field(
        Text(LONGEST_NAME, empty=True), default="", brief=True,
        help="Name of the sweep; submitting the same name again continues it", option=Option("--name", "TEXT"),
    )  # fmt: skip
    params: Params = field(spec_values.PARAMS, make=dict, brief=True, help="Parameters that do not vary")
    space: Space | None = field(
        Checked(lambda value, _: Space.parse(value), ANYTHING), default=None, brief=True,
        help='Values of each parameter: [0.1, 0.01], "2..8", {"from": 1e-5, "to": 0.1, "log": true}, '
             '{"choices": […], "when": {"other": "value"}}; names may nest',
        option=Option(
            "-p --param", "K=SPACE",
            "A parameter and its values or range: lr=0.1,0.01 · depth=2..8 · width=64..512/64 · x=0.0..1.0 · "
            "lr=log:1e-5..1e-1. Repeatable.", Reads.SPACE,
        ),
    )  # fmt: skip
    configurations: tuple[Params, ...] = field(
        CONFIGURATIONS, default=(), brief=True, help="Instead of a space: the parameters of each configuration",
        also={LIST: Field(value=CONFIGURATIONS, help="Another word for configurations")},
    )  # fmt: skip
    reps: int = field(
        Whole(1, MOST_REPS), default=1, help="Repetitions of each configuration, each with its own seed",
        option=Option("--reps", "N"),
    )  # fmt: skip
    method: Method = field(
        Choice(Method), default=Method.GRID, help="How configurations are chosen; tpe, gp and cmaes look at results",
        option=Option("--method", "METHOD", "Search method: grid (default), random, tpe, gp, cmaes or qmc."),
    )  # fmt: skip
    trials: int | None = field(
        Whole(1, MOST), default=None, brief=True, help="Number of configurations; a grid has all",
        option=Option("--trials", "N"),
    )  # fmt: skip
    parallel: int | None = field(
        Whole(1, MOST), default=None, brief=True, help="Maximum number of its runs at a time",
        option=Option("--parallel", "N"),
    )  # fmt: skip
    objective: Objective | None = field(Part(Objective), default=None, brief=True, also=SHORT)
    stop: Stopping | None = field(
        Checked(Stopping.parse, STOP), default=None, brief=True,
        help="A rule by which runs are stopped early; with it, how a run is asked to stop",
        option=Option(
            "--stop", "RULE", "Early stopping: asha or median, with settings as in asha,first=2,factor=3.", Reads.RULE
        ),
    )  # fmt: skip
    seed: int = field(
        Whole(0, (1 << 63) - 1), default=0, help="Random seed of the sweep; the same seed gives the same trials",
        option=Option("--seed", "N"),
    )  # fmt: skip
    fresh: bool = field(
        Flag(), default=False, help="Start a new sweep even if an identical one exists",
        option=Option("--fresh", reads=Reads.FLAG),
    )  # fmt: skip

    @classmethod
    def parse(cls, value: object, where: str = "") -> SweepSpec:
        value, stop = _split_stop(value)
        found = read(cls, value, where)
        if stop:
            found["run"] = found["run"].evolve(stop=Stop.parse(stop))
        if found.get("method", Method.GRID).learns:
            found.setdefault("parallel", PARALLEL)
        sweep = cls(**found)
        sweep._check()
        return sweep

    def to_json(self) -> dict[str, Any]:
        """A document that parses to the same sweep; `fresh` is a request of the moment, and no part of it."""
        shown = plain(self)
        del shown["fresh"]
        stop = {**self.run.to_json().get("stop", {}), **(self.stop.to_json() if self.stop else {})}
        return {**shown, "stop": stop} if stop else shown

    @property
    def digest(self) -> str:
        """Of what is searched, and with what command: a sweep without a name is known by it."""
        document = self.to_json()
        asked = {name: document.get(name) for name in _IDENTITY}
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()

    @property
    def search(self) -> dict[str, Any]:
        """What cannot change while a method that learns goes on."""
        document = self.to_json()
        fixed = {name: document.get(name) for name in ("method", "space", "seed", "objective", "params")}
        return {**fixed, "stop": self.stop.to_json() if self.stop else None}

    def listed(self) -> list[Params]:
        """All configurations of a method that does not look at results, without what all share."""
        found = list(islice(self._stream(), self.trials or MOST + 1))
        if len(found) > MOST:
            raise errors.InvalidInput(
                f"space: there are more than {MOST:,} configurations", "use fewer values, or say how many: trials"
            )
        return found

    def complete(self, chosen: Mapping[str, Any]) -> Params:
        return spaces.merged(self.params, chosen)

    def _stream(self) -> Iterator[Params]:
        if self.configurations:
            return iter(self.configurations)
        assert self.space is not None, "a sweep has a space or a list"
        if self.method is Method.GRID:
            return self.space.grid()
        return (sampling.draw if self.method is Method.RANDOM else sampling.spread)(self.space, self.seed)

    def _check(self) -> None:
        if self.space is None and not self.configurations:
            raise errors.InvalidInput("space: there is nothing to sweep over", spaces.EXAMPLE)
        if self.space is not None and self.configurations:
            raise errors.InvalidInput(
                "space: a sweep has a space or a list of configurations, and not both", "leave out one of them"
            )
        if self.configurations and self.method is not Method.GRID:
            raise errors.InvalidInput(
                f"method: a list of configurations leaves nothing to {self.method}", "leave it out"
            )
        if self.stop is not None and self.objective is None:
            raise errors.InvalidInput("stop: compares a metric, and none is named", "add minimize or maximize")
        self._check_drawn()
        self._check_command()

    def _check_drawn(self) -> None:
        if self.method is Method.GRID:
            if self.space is not None:
                self.space.check_finite()
            return
        if self.method.learns and self.objective is None:
            raise errors.InvalidInput(f"method: {self.method} needs an objective", "add minimize or maximize")
        if self.trials is None:
            raise errors.InvalidInput(f"trials: {self.method} needs to know how many", "such as trials: 60")

    def _check_command(self) -> None:
        """A `{name}` that some configuration does not have is found now, and not when that one is to start."""
        for name in template.placeholders(self.run.command):
            if name not in BUILT_IN and not self._is_always_there(name):
                fix = "{{ and }} are literal braces; a parameter that is not always there is passed by params_as"
                raise errors.InvalidInput(f"command: {{{name}}} is no parameter of every configuration", fix)

    def _is_always_there(self, name: str) -> bool:
        missing = object()
        if template.find(name, self.params, missing) is not missing:
            return True
        if self.space is None:
            return all(template.find(name, params, missing) is not missing for params in self.configurations)
        inside = [known for known in self.space.dimensions if known.startswith(f"{name}.")]
        return any(map(self.space.is_always_there, [name, *inside]))


_IDENTITY = (
    *names(RunSpec, lambda one: one.makes is Makes.COMMAND), "params", "space", "configurations", "method", "seed",
    "objective", "stop",
)  # fmt: skip


def _split_stop(value: object) -> tuple[object, dict[str, Any]]:
    """The document with the rule alone as its `stop`, and what a run's own field of that name says (signal, grace)."""
    stop = value.get("stop") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(stop, Mapping):
        return value, {}
    own = {name: item for name, item in stop.items() if name in declared(Stop)}
    rule = {name: item for name, item in stop.items() if name not in own}
    return {**value, "stop": rule or None}, own
