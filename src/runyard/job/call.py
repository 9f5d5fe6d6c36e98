"""`python -m runyard.job.call FILE_OR_MODULE:FUNCTION`: one Python function as a run, see runyard.client.functions.

The run's parameters are its keywords. What it returns is in `result.json` of the outputs, and the numbers in it are the
run's summary. The function is imported, never unpickled: its file came with the code.
"""

import importlib
import json
import os
import sys
from typing import Any, Callable, Dict, List, Tuple

from . import metrics, run_facts

RESULT = "result.json"
LOADING = "RUNYARD_LOADING"  # set while the file is imported: a submission then would repeat itself


def main(arguments: List[str]) -> int:
    if len(arguments) != 1 or ":" not in arguments[0]:
        return _refuse("usage: python -m runyard.job.call FILE_OR_MODULE:FUNCTION")
    place, _, name = arguments[0].rpartition(":")
    try:
        function = load(place, name)
    except (ImportError, AttributeError, OSError) as error:
        return _refuse("%s cannot be called: %s" % (arguments[0], error))
    return keep(name, function(**run_facts.params()))


def load(place: str, name: str) -> Callable[..., Any]:
    """Import the module as the submitting program did: by its own name, never as `__main__`."""
    root, module = _module_of(place) if place.endswith(".py") else (os.getcwd(), place)
    sys.path.insert(0, root)
    os.environ[LOADING] = "%s:%s" % (place, name)
    try:
        function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    finally:
        del os.environ[LOADING]
    return function


def keep(name: str, result: Any) -> int:
    try:
        text = json.dumps(result, default=_plain, indent=1)
    except (TypeError, ValueError) as error:
        return _refuse("%s returned something that JSON does not have: %s" % (name, error))
    _write(str(run_facts.outputs() / RESULT), text + "\n")
    metrics.summary(**_numbers(json.loads(text)))
    return 0


def _module_of(path: str) -> Tuple[str, str]:
    """Where the import of a file begins, and its name from there: packages have an `__init__.py` in each folder."""
    if not os.path.isfile(path):
        raise OSError("there is no file %s in %s" % (path, os.getcwd()))
    folder, file = os.path.split(os.path.abspath(path))
    names = [file[: -len(".py")]]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, last = os.path.split(folder)
        names.insert(0, last)
    return folder, ".".join(names)


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy and torch, paths and sets. Each type has its own conversion to plain values."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if hasattr(value, "__fspath__"):
        return os.fspath(value)
    return float(value)


def _numbers(result: Any) -> Dict[str, Any]:
    members = result if isinstance(result, dict) else {"result": result}
    return {name: value for name, value in members.items() if type(value) in (int, float)}


def _write(path: str, text: str) -> None:
    """Write it completely or not at all."""
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".tmp", path)


def _refuse(sentence: str) -> int:
    sys.stderr.write("runyard: %s\n" % sentence)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
