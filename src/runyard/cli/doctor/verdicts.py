"""The result of a check: a verdict, a sentence and, if something is wrong, a fix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from runyard import errors

OK, WARN, FAIL = "ok", "warn", "fail"

Said = tuple[str, str] | tuple[str, str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    check: str
    verdict: str
    message: str
    fix: str = ""


def finding(name: str, look: Callable[[], Said]) -> Finding:
    """The result of a check. An error is a finding too, even an unexpected one."""
    try:
        verdict, message, *fix = look()
    except errors.RunyardError as error:
        return failed(name, error)
    except Exception as error:
        verdict, message, fix = FAIL, f"the check itself failed: {error}", ["RUNYARD_DEBUG=1 runyard doctor"]
    return Finding(check=name, verdict=verdict, message=message, fix=fix[0] if fix else "")


def failed(name: str, error: errors.RunyardError, fix: str = "") -> Finding:
    return Finding(check=name, verdict=FAIL, message=error.message, fix=fix or error.fix)
