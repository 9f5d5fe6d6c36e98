"""Copies of runs: a new run equals the original except for requested changes."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runyard import errors
from runyard.model import fields, template
from runyard.model.array import Array
from runyard.model.declaration import Value, declared
from runyard.model.input_file import shown_url
from runyard.model.python_env import PIP, RECORD, SYNC, PythonEnv, Recorded
from runyard.model.spec import RunSpec
from runyard.model.values import Choice

# The fields that may be changed, each with its kind of value.
VALUES: dict[str, Value] = {
    name: Choice((SYNC,)) if name == "python_env" else one.value for name, one in declared(RunSpec).items() if one.rerun
}
_NOTHING = object()


@dataclass(frozen=True, slots=True)
class Changes:
    """Build it with `parse`."""

    given: Mapping[str, Any]  # by field of a run

    @classmethod
    def parse(cls, value: object) -> Changes:
        given = fields.mapping(value, "rerun", VALUES)
        return cls({name: VALUES[name].parse(item, name) for name, item in given.items() if item is not None})

    def apply(self, run: int, spec: RunSpec) -> RunSpec:
        """The spec of the new run; raises InvalidInput, and Conflict if the environment cannot be built."""
        changed = dict(self.given)
        if "params" in changed:
            changed["params"] = _with(spec.params, changed["params"], run)
        if "python_env" in changed:
            changed["python_env"] = _built(spec.python_env, run)
        again = spec.evolve(
            **changed,
            array=None if spec.array is None else _alone(spec.array),
            idempotency_key=None,
            origin={"host": "", "env": {}, **spec.origin, "run": run},
        )
        again.argv()
        return again


def notes(spec: RunSpec) -> list[str]:
    """Notices about what a copy uses in its current state, because the original was not kept."""
    found = [*_of_code(spec), *_of_python(spec.python_env)]
    loose = [data.path for data in spec.data if data.path is not None]
    loose += [shown_url(item.url) for item in spec.inputs if item.url]
    return [*found, f"the yard keeps no digest of {', '.join(loose)}: used as it is now"] if loose else found


def _of_code(spec: RunSpec) -> Iterator[str]:
    if spec.code is None:
        used = f"{spec.cwd} is used as it is now" if spec.cwd else "the files of its command are used as they are now"
        yield f"it has no snapshot of its code: {used} (submit with --code . to keep one)"


def _of_python(python: PythonEnv) -> Iterator[str]:
    if python.conda is not None:
        yield f"uses the conda environment {python.conda} of the site as it is now"
    elif not python.of_site:
        obstacle = _obstacle(python.record)
        remedy = f"its own cannot be built: {obstacle}" if obstacle else "--python-env sync builds the recorded ones"
        yield f"uses the packages currently installed at the site ({remedy})"


def _with(params: Mapping[str, Any], changes: Mapping[str, Any], run: int) -> dict[str, Any]:
    """Only existing parameters can be changed: a misspelt name would repeat the same run."""
    changed = copy.deepcopy(dict(params))
    for name, value in changes.items():
        if template.find(name, params, _NOTHING) is _NOTHING:
            fix = fields.nearest(name, template.names(params)) if params else "it has none: submit a new run instead"
            raise errors.InvalidInput(f"run {run} has no parameter {name!r}", fix)
        _put(changed, name, copy.deepcopy(value))
    return changed


def _put(params: dict[str, Any], name: str, value: Any) -> None:
    if name in params:
        params[name] = value
        return
    *path, last = name.split(".")
    for part in path:
        params = params[part]
    params[last] = value


def _built(python: PythonEnv, run: int) -> PythonEnv:
    if python.use != RECORD:  # it has its own environment, which is built or found again
        return python
    noted, obstacle = python.record, _obstacle(python.record)
    if noted is None or obstacle:
        raise errors.Conflict(
            f"run {run}: its Python environment cannot be built elsewhere: {obstacle}",
            "leave out --python-env to use the site's packages",
        )
    version = ".".join(noted.python.split(".")[:2])
    return PythonEnv(use=SYNC, file=noted.freeze, kind=PIP, name="lock", python=version, record=noted)


def _obstacle(noted: Recorded | None) -> str:
    """Why the environment cannot be built; empty: it can."""
    if noted is not None and noted.conda is not None:
        return "it is a conda environment, and packages installed by pip were not recorded separately"
    if noted is not None and noted.notes:
        return noted.notes[0]
    return "none was recorded" if noted is None or noted.freeze is None else ""


def _alone(array: Array) -> Array:
    """With its index, and without its neighbours: a run finds those by consecutive ids."""
    return dataclasses.replace(array, offset=0, count=1, limit=None)
