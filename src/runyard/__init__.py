"""runyard: manages the training runs of a lab."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runyard.version import __version__

__all__ = ["Client", "Run", "RunyardError", "__version__"]

if TYPE_CHECKING:
    from runyard.client import Client, Run
    from runyard.errors import RunyardError

_HOMES = {"Client": "runyard.client", "Run": "runyard.client", "RunyardError": "runyard.errors"}


def __getattr__(name: str) -> Any:
    """Load the public names on demand: `runyard --help` must not load the client."""
    if name not in _HOMES:
        raise AttributeError(f"module 'runyard' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
