"""The package `runyard` for runs at sites where it is not installed: `job`, and nothing else.

A copy of this file is the `__init__` of that package. It is at the end of PYTHONPATH, which is still before installed
packages, so it yields to a real runyard further down the path.
"""

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import Optional


def _installed() -> Optional[ModuleSpec]:
    """Another runyard, if this Python has one: in a folder of its path, or found by a hook as of editable installs."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    for finder in sys.meta_path:
        found = finder.find_spec(__name__, path if finder is PathFinder else None)
        if found is not None and found.origin is not None and found.loader is not None:
            return found
    return None


def _make_room() -> None:
    found = _installed()
    if found is None or found.loader is None:
        return
    own, module = sys.modules[__name__], importlib.util.module_from_spec(found)
    sys.modules[__name__] = module
    try:
        found.loader.exec_module(module)
    except Exception:  # it may be for another Python, or not whole: what a run needs is here
        sys.modules[__name__] = own


_make_room()
