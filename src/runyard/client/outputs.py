"""The files that a run left, as the yard lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runyard.client.session import Session

LONGEST_POLL = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """One file that a run wrote into its OUTPUT_DIR."""

    path: str
    size: int
    digest: str
    mode: int = 0o644
    attempt: int | None = None


def of_run(session: Session, run: int) -> list[Output]:
    """As the yard has them; of a run that goes on, those of the last time that they were asked for."""
    return _outputs(session.call("GET", f"/runs/{run}/outputs"))


def current(session: Session, run: int, timeout: float) -> tuple[list[Output], bool]:
    """As they are at its site now; and False where that did not answer in time."""
    found = session.call(
        "POST", f"/runs/{run}/outputs", query={"timeout": timeout}, timeout=timeout + LONGEST_POLL, repeatable=True
    )
    return _outputs(found), found["current"]


def _outputs(answer: Mapping[str, Any]) -> list[Output]:
    return [Output(**{name: item[name] for name in Output.__slots__ if name in item}) for item in answer["outputs"]]
