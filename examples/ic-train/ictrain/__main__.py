"""`python -m ictrain`: the configuration comes from the yard, or from a file."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from ictrain import training
from ictrain.record import Record, RunsConfig, write_json


def main() -> None:
    given = _arguments()
    outputs = Path(os.environ.get("OUTPUT_DIR", "runs"))
    record = Record(RunsConfig.load(given.runs_config, outputs), _config(given.config))
    scores = training.run(record, int(os.environ.get("RUNYARD_SEED") or 1))
    if record.directory.parent != outputs and "OUTPUT_DIR" in os.environ:  # what comes back to whoever asked
        outputs.mkdir(parents=True, exist_ok=True)
        write_json(outputs / "metadata.json", record.metadata)
    print(f"{record.directory}: accuracy {scores['accuracy']:.3f}, AUC {scores['AUC']:.3f}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ictrain", description="Train an image classifier on generated pictures.")
    parser.add_argument("config", nargs="?", help="a run configuration in JSON (default: $RUNYARD_PARAMS)")
    parser.add_argument("-r", "--runs_config", default=os.environ.get("RUNS_CONFIG"), help="where runs are kept")
    return parser.parse_args()


def _config(path: str | None) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(Path(path or os.environ["RUNYARD_PARAMS"]).read_text(encoding="utf-8"))
    return config


if __name__ == "__main__":
    main()
