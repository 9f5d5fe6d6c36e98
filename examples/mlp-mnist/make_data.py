#!/usr/bin/env python3
"""Makes small data in the form that train_mnist.py reads: python make_data.py FOLDER

Each of ten classes is a picture of its own with noise on it, 28 by 28, as in MNIST.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROWS = {"train": 1000, "valid": 500}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(1)
    pictures = generator.random((10, 784)) < 0.2
    for name, rows in ROWS.items():
        targets = generator.integers(0, 10, rows)
        inputs = np.clip(pictures[targets] * 0.5 + generator.normal(0.0, 1.0, (rows, 784)), 0.0, 1.0)
        np.savez_compressed(
            folder / f"mnist-{name}.npz", inputs=inputs.astype(np.float16), targets=targets.astype(np.int8)
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
