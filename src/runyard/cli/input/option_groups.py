"""Groups of options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def together(*options: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """One decorator for all of them; `--help` lists them in this order."""

    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
