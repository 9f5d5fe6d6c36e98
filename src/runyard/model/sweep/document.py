"""A sweep as it is handed in: the fields of a run, and what is varied. The same in YAML, JSON and Python keywords."""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from runyard import errors
from runyard.model import command, fields, spec, template
from runyard.model.spec import RunSpec
from runyard.model.sweep import sampling, stopping
from runyard.model.sweep import space as spaces
from runyard.model.sweep.objective import Objective
from runyard.model.sweep.space import MOST, Params, Space
from runyard.model.sweep.stopping import Stopping

LONGEST_NAME = 150  # characters
MOST_REPS = 1000
PARALLEL = 8  # trials at a time of a method that learns from those before, where nobody says otherwise
LIST = "param2val_list"  # what the list of configurations is called elsewhere
OWN_FIELDS = (
    "name", "space", "configurations", LIST, "method", "trials", "reps", "seed", "parallel", "minimize", "maximize",
    "objective", "stop", "fresh",
)  # fmt: skip
NOT_OF_A_SWEEP = ("array", "idempotency_key", "index")
RUN_FIELDS = tuple(
    name for name in spec.FIELDS if name not in (*NOT_OF_A_SWEEP, *(own for own in OWN_FIELDS if own != "stop"))
)
FIELDS = tuple(dict.fromkeys((*OWN_FIELDS, *RUN_FIELDS)))
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


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepSpec:
    """One sweep. Build it with `parse`, which checks everything that came from outside."""

    run: RunSpec  # what all its runs share, without any parameters
    name: str = ""
    params: Params = field(default_factory=dict)  # that do not vary
    space: Space | None = None
    configurations: tuple[Params, ...] = ()  # instead of a space
    method: Method = Method.GRID
    trials: int | None = None  # configurations at most; None: all that there are
    reps: int = 1
    seed: int = 0
    parallel: int | None = None  # runs at a time; None: no limit
    objective: Objective | None = None
    stopping: Stopping | None = None
    fresh: bool = False

    @classmethod
    def parse(cls, value: object) -> SweepSpec:
        given = {name: item for name, item in fields.mapping(value, "sweep", FIELDS).items() if item is not None}
        rule, own_stop = stopping.split(given.pop("stop", None))
        run = {name: given[name] for name in RUN_FIELDS if name in given and name != "params"}
        method = Method(fields.one_of(given.get("method", Method.GRID), "method", Method))
        sweep = cls(
            run=RunSpec.parse({**run, **({"stop": own_stop} if own_stop else {})}),
            name=fields.text(given.get("name", ""), "name", LONGEST_NAME, empty=True),
            params=spec.params_mapping(given.get("params", {})),
            space=Space.parse(given["space"]) if "space" in given else None,
            configurations=_configurations(_listed(given)),
            method=method,
            trials=_count(given.get("trials"), "trials", MOST),
            reps=fields.integer(given.get("reps", 1), "reps", 1, MOST_REPS),
            seed=fields.integer(given.get("seed", 0), "seed", 0, (1 << 63) - 1),
            parallel=_count(given.get("parallel"), "parallel", MOST) or (PARALLEL if method.learns else None),
            objective=Objective.parse(given),
            stopping=Stopping.parse(rule) if rule is not None else None,
            fresh=fields.boolean(given.get("fresh", False), "fresh"),
        )
        sweep._check()
        return sweep

    def to_json(self) -> dict[str, Any]:
        """A document that parses to the same sweep; `fresh` is a wish of the moment, and no part of it."""
        run = self.run.to_json()
        stop = {**run.pop("stop", {}), **(self.stopping.to_json() if self.stopping else {})}
        shown: dict[str, Any] = {
            "name": self.name, "params": self.params, "space": self.space.to_json() if self.space else None,
            "configurations": list(self.configurations), "trials": self.trials, "parallel": self.parallel,
            "objective": self.objective.to_json() if self.objective else None, "stop": stop,
        }  # fmt: skip
        always = {"method": self.method.value, "reps": self.reps, "seed": self.seed}
        return {**run, **{name: item for name, item in shown.items() if item}, **always}

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
        return {**fixed, "stop": self.stopping.to_json() if self.stopping else None}

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
        if self.stopping is not None and self.objective is None:
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
    "command", "script", "cwd", "env", "params", "space", "configurations", "method", "seed", "objective", "stop",
    "params_as",
)  # fmt: skip


def _count(value: object, where: str, most: int) -> int | None:
    return None if value is None else fields.integer(value, where, 1, most)


def _listed(given: Mapping[str, Any]) -> object:
    if LIST in given and "configurations" in given:
        raise errors.InvalidInput(f"{LIST}: is the same as configurations", "leave out one of them")
    return given.get(LIST, given.get("configurations"))


def _configurations(value: object) -> tuple[Params, ...]:
    if value is None:
        return ()
    if not isinstance(value, (list, tuple)) or not value:
        raise errors.InvalidInput(
            "configurations: must be a list of parameters, with one at least", "such as [{lr: 0.1}, {lr: 0.01}]"
        )
    fields.at_most(len(value), "configurations", MOST)
    seen: dict[str, int] = {}
    found = []
    for index, item in enumerate(value):
        params = _params(item, index)
        first = seen.setdefault(spaces.identity(params), index)
        if first != index:
            raise errors.InvalidInput(f"configurations[{index}]: is the same as configurations[{first}]", "use reps")
        found.append(params)
    return tuple(found)


def _params(value: object, index: int) -> Params:
    try:
        return spec.params_mapping(value)
    except errors.InvalidInput as error:
        raise errors.InvalidInput(f"configurations[{index}]: {error.message}", error.fix) from None
