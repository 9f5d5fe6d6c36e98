"""A run that is started again: a new one, which has everything of the first but what is changed on purpose."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from runyard import errors
from runyard.model import fields, template
from runyard.model.array import Array
from runyard.model.input_file import shown_url
from runyard.model.python_env import PIP, RECORD, SYNC, PythonEnv, Recorded
from runyard.model.spec import RunSpec

_FIELDS = ("params", "seed", "site", "python_env")
_NOTHING = object()


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """Build it with `parse`."""

    params: dict[str, Any] = field(default_factory=dict)  # those that change; `model.depth` is one within another
    seed: int | None = None  # None: the first one's
    site: str | None = None  # None: what the first one asked for
    build: bool = False  # the Python environment that was only recorded is built at the site

    @classmethod
    def parse(cls, value: object) -> Changes:
        given = fields.mapping(value, "rerun", _FIELDS)
        wish = given.pop("python_env", None)
        checked = RunSpec.parse({"command": ["rerun"], **given})  # as the fields of a run are
        if wish is not None:
            fields.one_of(wish, "python_env", (SYNC,))
        return cls(params=checked.params, seed=checked.seed, site=checked.site, build=wish is not None)

    def apply(self, run: int, spec: RunSpec) -> RunSpec:
        """The spec of the new run; raises InvalidInput, and Conflict where the environment cannot be built."""
        changed = {name: value for name, value in (("seed", self.seed), ("site", self.site)) if value is not None}
        again = spec.evolve(
            **changed,
            params=_with(spec.params, self.params, run),
            python_env=_built(spec.python_env, run) if self.build else spec.python_env,
            array=None if spec.array is None else _alone(spec.array),
            idempotency_key=None,
            origin={"host": "", "env": {}, **spec.origin, "run": run},
        )
        again.argv()
        return again


def notes(spec: RunSpec) -> list[str]:
    """What a run of this spec finds as it is now, because nothing in it says how it was; for people."""
    found = [*_of_code(spec), *_of_python(spec.python_env)]
    loose = [data.path for data in spec.data if data.path is not None]
    loose += [shown_url(item.url) for item in spec.inputs if item.url]
    return [*found, f"the yard keeps no digest of {', '.join(loose)}: used as it is now"] if loose else found


def _of_code(spec: RunSpec) -> Iterator[str]:
    if spec.code is None:
        used = f"{spec.cwd} is used as it is now" if spec.cwd else "what its command names is used as it is now"
        yield f"it has no snapshot of its code: {used} (submit with --code . to keep one)"


def _of_python(python: PythonEnv) -> Iterator[str]:
    if python.conda is not None:
        yield f"it has the conda environment {python.conda} of its site as that is now"
    elif not python.of_site:
        obstacle = _obstacle(python.record)
        remedy = f"its own cannot be built: {obstacle}" if obstacle else "--python-env sync builds the recorded ones"
        yield f"it has the Python packages that its site has now ({remedy})"


def _with(params: Mapping[str, Any], changes: Mapping[str, Any], run: int) -> dict[str, Any]:
    """Only what is there can be changed: a name that was misspelt would start the same run once more."""
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
    if python.use != RECORD:  # it has one of its own, which is built or found again as it was
        return python
    noted, obstacle = python.record, _obstacle(python.record)
    if noted is None or obstacle:
        raise errors.Conflict(
            f"run {run}: its Python environment cannot be built elsewhere: {obstacle}",
            "leave --python-env out: it then has what its site has",
        )
    version = ".".join(noted.python.split(".")[:2])
    return PythonEnv(use=SYNC, file=noted.freeze, kind=PIP, name="lock", python=version, record=noted)


def _obstacle(noted: Recorded | None) -> str:
    """Why the environment cannot be built; empty: it can."""
    if noted is not None and noted.conda is not None:
        return "it is one of conda's, and what pip had put into it is not told apart"
    if noted is not None and noted.notes:
        return noted.notes[0]
    return "none was recorded" if noted is None or noted.freeze is None else ""


def _alone(array: Array) -> Array:
    """With the number it had, and without its neighbours: a run finds them by the ids that follow its own."""
    return dataclasses.replace(array, offset=0, count=1, limit=None)
