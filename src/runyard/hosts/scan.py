"""The near half of `Host.scan`: translates requests to `far.scanning`, and its answers to the contract."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from runyard.hosts.base import KnownFiles, Seen


def question(known: Iterable[KnownFiles]) -> list[list[Any]]:
    return [[attempt.directory, dict(attempt.offsets), attempt.version, attempt.started] for attempt in known]


def answer(found: dict[str, Any], pieces: Sequence[bytes]) -> Seen:
    return Seen(
        directory=found["directory"],
        started=found["started"],
        version=found["version"],
        status=found["status"],
        data=dict(zip(found["data"], pieces, strict=True)),
        sizes=found["sizes"],
    )
