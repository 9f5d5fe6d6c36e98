"""A Python package on this machine, loaded once for all the requests that a far side serves."""

import os
import sys
from importlib import import_module, util
from typing import Any, Dict

NAME = "runyard_%s"


def call(package: bytes, function: str, arguments: Dict[str, Any]) -> Any:
    """`function` is `module.name`; what it answers is JSON. OSError when there is no such package."""
    module, _, name = function.partition(".")
    found = import_module("%s.%s" % (_load(os.fsdecode(package)), module))
    return getattr(found, name)(**arguments)


def _load(place: str) -> str:
    """Under a separate name for each path: another version may be loaded too."""
    name = NAME % os.path.basename(place).replace("-", "_")
    if name in sys.modules:
        return name
    source = os.path.join(place, "__init__.py")
    os.stat(source)
    spec = util.spec_from_file_location(name, source, submodule_search_locations=[place])
    assert spec is not None and spec.loader is not None
    sys.modules[name] = module = util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return name
