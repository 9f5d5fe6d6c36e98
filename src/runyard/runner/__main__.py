"""`python3 <this directory> run|zygote|sweep <directory>`.

A directory that is executed is no package to Python. This file makes it one, under a fixed name, so that relative
imports work in a copy just as they do in the installed package.
"""

import importlib
import importlib.util
import os
import sys
from types import ModuleType

PACKAGE = "runyard_runner"


def load_package() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    # Python put this directory on the path; its module names must not stand in for others'.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    source = os.path.join(here, "__init__.py")
    spec = importlib.util.spec_from_file_location(PACKAGE, source, submodule_search_locations=[here])
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = package
    spec.loader.exec_module(package)


def commands() -> ModuleType:
    load_package()
    return importlib.import_module(PACKAGE + ".commands")


if __name__ == "__main__":
    if sys.version_info < (3, 6):
        sys.exit("runyard's runner needs python3 of version 3.6 or newer; this is " + sys.version.split()[0])
    sys.exit(commands().main(sys.argv[1:]))
