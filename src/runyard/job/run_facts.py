"""Parameters, output directory, seed and index of the run."""

import json
import os
from typing import TYPE_CHECKING, Any, Dict, Optional

if TYPE_CHECKING:
    from pathlib import Path


def params() -> Dict[str, Any]:
    """The parameters of this run; none outside a run."""
    path = os.environ.get("RUNYARD_PARAMS")
    if not path:
        return {}
    with open(path, encoding="utf-8") as file:
        return dict(json.load(file))


def outputs() -> "Path":
    """The directory whose files are collected; outside a run `./outputs`. It exists."""
    return made(os.environ.get("OUTPUT_DIR") or "outputs")


def seed() -> Optional[int]:
    """The random seed that this run is to use; None if it has none."""
    text = os.environ.get("RUNYARD_SEED")
    return int(text) if text else None


def index() -> int:
    """The number of this run in its sweep or array, from 1; 1 for a single run, and outside runs."""
    return int(os.environ.get("RUNYARD_INDEX") or 1)


def made(path: str) -> "Path":
    from pathlib import Path  # here: with it the import would take a third longer

    directory = Path(path)
    directory.mkdir(parents=True, exist_ok=True)
    return directory
