"""A long computation that survives being killed: it keeps its place in CHECKPOINT_DIR and goes on from there.

`--die-at N` kills it at step N of its first attempt, as a crash would.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--die-at", type=int, default=0)
    options = parser.parse_args()
    checkpoint = Path(os.environ.get("CHECKPOINT_DIR", ".")) / "step.json"
    resumed = bool(os.environ.get("RUNYARD_RESUME")) and checkpoint.exists()
    place = json.loads(checkpoint.read_text()) if resumed else {"step": 0, "sum": 0}
    print(f"attempt {os.environ.get('RUNYARD_ATTEMPT', '1')} begins after step {place['step']}", flush=True)
    while place["step"] < options.steps:
        place = advance(place)
        save(checkpoint, place)
        if place["step"] == options.die_at and not resumed:
            os.kill(os.getpid(), signal.SIGKILL)
    result = Path(os.environ.get("OUTPUT_DIR", ".")) / "result.json"
    result.write_text(json.dumps({"sum": place["sum"]}) + "\n")
    print(f"the sum is {place['sum']}")


def advance(place: dict[str, int]) -> dict[str, int]:
    time.sleep(0.05)
    step = place["step"] + 1
    return {"step": step, "sum": place["sum"] + step}


def save(checkpoint: Path, place: dict[str, int]) -> None:
    """Whole or not at all: a kill never leaves half a checkpoint."""
    beside = checkpoint.with_suffix(".tmp")
    beside.write_text(json.dumps(place))
    beside.replace(checkpoint)


if __name__ == "__main__":
    main()
