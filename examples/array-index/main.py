"""Trains the configuration with a number, as scripts for array jobs do: `python main.py --id 3`. Standard library only.

The list of configurations is here, in the program; a sweep only counts from 1 to their number.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
from pathlib import Path

CONFIGURATIONS = [
    {"hidden": hidden, "lr": lr, "rnn": rnn}
    for rnn, lr, hidden in itertools.product(("lstm", "lmn"), (1e-3, 1e-2), (50, 100))
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--id", type=int, required=True, help=f"from 1 to {len(CONFIGURATIONS)}")
    number: int = parser.parse_args().id
    configuration = CONFIGURATIONS[number - 1]
    print(f"configuration {number}: {configuration}", flush=True)
    output = Path(os.environ.get("OUTPUT_DIR", "output"))
    output.mkdir(parents=True, exist_ok=True)
    with (output / "metrics.jsonl").open("w") as metrics:
        for epoch, loss in enumerate(train(configuration), 1):
            metrics.write(json.dumps({"step": epoch, "loss": loss}) + "\n")
    (output / "result.json").write_text(json.dumps({**configuration, "id": number, "loss": loss}) + "\n")


def train(configuration: dict[str, object], epochs: int = 5) -> list[float]:
    """Stands for a training: a loss that falls, to different depths."""
    source = random.Random(json.dumps(configuration))
    depth = source.uniform(0.1, 1.0)
    return [depth + 2 ** -float(epoch) for epoch in range(epochs)]


if __name__ == "__main__":
    main()
