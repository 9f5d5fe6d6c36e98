"""Python functions as runs: by reference, never pickled. A run imports the function from its file, in the snapshot of
the code, and calls it with its parameters as keywords: see runyard.job.call.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

from runyard import errors
from runyard.client import origin, run_inputs
from runyard.client.run import Run
from runyard.client.run_inputs import CodeHere
from runyard.model.states import RunState

Function = Callable[..., Any]
Grid = Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]]

RESULT = "result.json"
LOADING = "RUNYARD_LOADING"  # as in runyard.job.call
MOST = 100_000  # calls at once


class FunctionCall(Run):
    """A run that calls a function."""

    def result(self, timeout: float | None = None) -> Any:
        """The function's return value, as JSON; waits for it. RunyardError if the run did not succeed."""
        self.wait(timeout)
        if self.state != RunState.SUCCEEDED:
            why = ": ".join(word for word in (self.reason, self.detail) if word)
            raise errors.Conflict(f"run {self.id} {self.state}: {why}", f"see its log: runyard logs {self.id}")
        found = [output for output in self.outputs() if output.path == RESULT]
        if not found:
            raise errors.NotFound(f"run {self.id} left no {RESULT}", "include it in `outputs`")
        with tempfile.TemporaryDirectory() as place:
            (path,) = self.fetch(place, outputs=found)
            return json.loads(path.read_text(encoding="utf-8"))


def specs(function: Function, grid: Grid, common: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A run for each configuration; `common` has the fields of all of them."""
    if os.environ.get(LOADING):
        raise errors.InvalidInput(
            f"map was called while a run imports {os.environ[LOADING]}", 'put it below: if __name__ == "__main__":'
        )
    path, name = find(function)
    code, root = _code(path, common)
    shared = {"name": name, "origin": _origin(), **common, **code, "command": command(path, name, root)}
    given = dict(common.get("params") or {})
    calls = [{**given, **params} for params in configurations(grid)]
    return [{**shared, "params": params, "index": number} for number, params in enumerate(calls, 1)]


def configurations(grid: Grid) -> list[dict[str, Any]]:
    """All combinations, the first name fastest; or a list of configurations as it is."""
    if not isinstance(grid, Mapping):
        return [dict(params) for params in grid]
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise errors.InvalidInput(f"grid[{name!r}]: it is no list of values", "write it like {'lr': [0.1, 0.01]}")
    choices = {name: list(values) for name, values in grid.items()}
    slowest_first = itertools.islice(itertools.product(*reversed(choices.values())), MOST + 1)
    found = [dict(zip(choices, reversed(values), strict=True)) for values in slowest_first]
    if len(found) > MOST:
        raise errors.InvalidInput(f"grid: more than {MOST:,} configurations", "submit fewer at once")
    return found


def find(function: Function) -> tuple[Path, str]:
    """The file and the name by which a run can import a function; raises InvalidInput if there are none."""
    name = getattr(function, "__qualname__", "")
    if not isinstance(function, FunctionType):
        raise _refused(function, "is no plain Python function")
    if name.endswith("<lambda>"):
        raise _refused(function, "is a lambda, which has no name to import it by")
    if "." in name:
        raise _refused(function, "is defined inside another function or a class")
    module = sys.modules.get(function.__module__)
    file = getattr(module, "__file__", None)
    if not file or not os.path.isfile(file) or not file.endswith(".py"):
        raise _refused(function, "was typed in, and is in no file that a run could import")
    if getattr(module, name, None) is not function:
        raise _refused(function, f"is not what {file} calls {name}")
    return Path(os.path.abspath(file)), name


def command(path: Path, name: str, root: Path) -> list[str]:
    """Relative to the code, which a run has elsewhere. Braces in a path mean themselves."""
    place = path.relative_to(root).as_posix().replace("{", "{{").replace("}", "}}")
    return [_python().name, "-m", "runyard.job.call", f"{place}:{name}"]


def _code(path: Path, common: Mapping[str, Any]) -> tuple[dict[str, Any], Path]:
    """The code to send, and the run's working directory in it: as for any run, else the file's own folder."""
    said = {name: common[name] for name in ("code", "cwd") if name in common}
    code = run_inputs.resolve(said).get("code")
    here = Path(common.get("cwd") or origin.current_directory())
    root = code.root if isinstance(code, CodeHere) and "cwd" not in common else here
    if said and not path.is_relative_to(root):
        raise errors.InvalidInput(f"map: {path} is not below {root}", "call it from a folder above that file")
    if said or (code is not None and path.is_relative_to(root)):
        return ({"code": code} if code is not None else {}), root
    return {"code": CodeHere(root=_import_root(path))}, _import_root(path)


def _import_root(path: Path) -> Path:
    """The folder that contains a file's package; the file's own folder if it is in none."""
    folder = path.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _origin() -> dict[str, Any]:
    """On this machine a run uses the Python of the submitting program, whatever PATH says."""
    searched = os.pathsep.join([str(_python().parent), os.environ.get("PATH", os.defpath)])
    return origin.describe({**os.environ, "PATH": searched})


def _python() -> Path:
    beside = Path(sys.executable).with_name("python")
    return beside if beside.exists() else beside.with_name("python3")


def _refused(function: object, why: str) -> errors.InvalidInput:
    shown = getattr(function, "__qualname__", None) or repr(function)
    return errors.InvalidInput(f"map: {shown} {why}", "define it at the top of a .py file, and hand that in")
