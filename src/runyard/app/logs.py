"""Logging of a process."""

from __future__ import annotations

import logging


def to_stderr(level: str) -> None:
    """Our messages at the given level; of libraries only warnings and errors."""
    logging.basicConfig(level="WARNING", format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    logging.getLogger("runyard").setLevel(level.upper())
