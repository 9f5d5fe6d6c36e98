"""What a check says: a verdict, a sentence and, when something is wrong, the fix."""

from __future__ import annotations

from dataclasses import dataclass

OK, WARN, FAIL = "ok", "warn", "fail"

Said = tuple[str, str] | tuple[str, str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    check: str
    verdict: str
    message: str
    fix: str = ""
