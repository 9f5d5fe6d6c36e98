"""A small network in Keras, with nothing of runyard in it: the run's metrics are read from what CSVLogger writes.

runyard submit -f run.yaml --follow
runyard plot last --metric val_loss
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np

Array = np.ndarray[Any, np.dtype[np.float32]]


def spirals(count: int, seed: int) -> tuple[Array, Array]:
    """Points on two arms that wind around each other, and which arm each is on."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, count)
    turn = random.uniform(0.5, 3, count)
    angles = turn * np.pi + labels * np.pi
    points = np.stack([turn * np.cos(angles), turn * np.sin(angles)], axis=1) + random.normal(0, 0.1, (count, 2))
    return points.astype(np.float32), labels.astype(np.float32)


def build(width: int, lr: float) -> Any:
    model = keras.Sequential(
        [
            keras.Input((2,)),
            keras.layers.Dense(width, activation="relu"),
            keras.layers.Dense(width, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(keras.optimizers.Adam(lr), loss="binary_crossentropy", metrics=["accuracy"])
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    seed = int(os.environ.get("RUNYARD_SEED", "0"))
    output = Path(os.environ.get("OUTPUT_DIR", "output"))
    output.mkdir(parents=True, exist_ok=True)

    keras.utils.set_random_seed(seed)
    model = build(options.width, options.lr)
    model.fit(
        *spirals(600, seed),
        validation_data=spirals(200, seed + 1),
        epochs=options.epochs,
        verbose=2,
        callbacks=[keras.callbacks.CSVLogger(output / "training.csv")],
    )
    model.save(output / "model.keras")


if __name__ == "__main__":
    main()
