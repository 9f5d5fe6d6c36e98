"""What happened to a run, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runyard.client.session import Session


def of_run(session: Session, run: int, after: int = 0) -> Iterator[dict[str, Any]]:
    """Oldest first, page by page."""
    while True:
        answer = session.call("GET", f"/runs/{run}/events", query={"after": after})
        yield from answer["events"]
        if not answer["events"] or answer["next"] is None:
            return
        after = answer["next"]
