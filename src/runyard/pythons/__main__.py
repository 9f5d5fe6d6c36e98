"""Builds one environment: `python3 <this directory> PLACE BUILD`, the request is read from standard input."""

import json
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
if not __package__:  # a copy of this directory, whatever it is called there
    import importlib.util

    spec = importlib.util.spec_from_file_location(
        "pythons", os.path.join(here, "__init__.py"), submodule_search_locations=[here]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["pythons"] = package
    spec.loader.exec_module(package)
    __package__ = "pythons"

from . import building  # noqa: E402

if __name__ == "__main__":
    asked = json.loads(sys.stdin.buffer.read().decode())
    if not os.fork():  # the caller waits only for the parent process
        building.build(sys.argv[1], sys.argv[2], asked)
