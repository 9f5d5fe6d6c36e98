#!/usr/bin/env python3
"""Trains a classifier of handwritten digits and leaves everything in a folder of its own below OUTPUT_DIR.

    OUTPUT_DIR/2026-11-15_12-30-00/
      checkpoints/model.ckpt-<step>.npz      after each epoch; `checkpoint` names the last one
      train-summaries/  valid-summaries/     for TensorBoard: error and accuracy, per batch and per epoch
      run.npz                                at the end: one value per epoch

It knows nothing of runyard: it reads MLP_DATA_DIR and OUTPUT_DIR from the environment, and needs numpy.
"""

from __future__ import annotations

import datetime
import os
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]

EPOCHS, BATCH, LEARNING_RATE, SEED = 5, 50, 0.5, 123456


def main() -> None:
    for name in ("MLP_DATA_DIR", "OUTPUT_DIR"):
        assert name in os.environ, f"An environment variable {name} must be set"
    data = Path(os.environ["MLP_DATA_DIR"])
    stamp = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    run = Path(os.environ["OUTPUT_DIR"]) / stamp
    statistics = Training(load(data, "train"), load(data, "valid"), run).run()
    arrays: dict[str, Any] = {name: np.array(values) for name, values in statistics.items()}
    np.savez_compressed(run / "run.npz", **arrays)


class Training:
    """Softmax regression by gradient descent."""

    def __init__(self, train: tuple[Array, Array], valid: tuple[Array, Array], run: Path) -> None:
        self.train, self.valid = train, valid
        self.weights, self.biases = np.zeros((784, 10)), np.zeros(10)
        self.random = np.random.RandomState(SEED)
        self.step = 0
        self.checkpoints = run / "checkpoints"
        self.checkpoints.mkdir(parents=True)
        self.train_summaries = Summaries(run / "train-summaries")
        self.valid_summaries = Summaries(run / "valid-summaries")

    def run(self) -> dict[str, list[float]]:
        statistics: dict[str, list[float]] = {}
        for epoch in range(1, EPOCHS + 1):
            seen = [self.learn(*batch) for batch in batches(*self.train, self.random)]
            found = self.evaluate(*self.valid)
            self.valid_summaries.add(self.step, error=found[0], accuracy=found[1])
            self.save()
            error, accuracy = np.mean(seen, axis=0)
            print(f"Epoch {epoch:02}: err(train)={error:.2f} acc(train)={accuracy:.2f}")
            print(f"          err(valid)={found[0]:.2f} acc(valid)={found[1]:.2f}", flush=True)
            row = dict(train_error=error, train_accuracy=accuracy, valid_error=found[0], valid_accuracy=found[1])
            for name, value in row.items():
                statistics.setdefault(name, []).append(value)
        return statistics

    def learn(self, inputs: Array, targets: Array) -> tuple[float, float]:
        probabilities = self.probabilities(inputs)
        error, accuracy = score(probabilities, targets)
        gradient = (probabilities - targets) / len(inputs)
        self.weights -= LEARNING_RATE * inputs.T @ gradient
        self.biases -= LEARNING_RATE * gradient.sum(axis=0)
        self.step += 1
        self.train_summaries.add(self.step, error=error, accuracy=accuracy)
        return error, accuracy

    def evaluate(self, inputs: Array, targets: Array) -> tuple[float, float]:
        return score(self.probabilities(inputs), targets)

    def probabilities(self, inputs: Array) -> Array:
        logits = inputs @ self.weights + self.biases
        likely = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(likely / likely.sum(axis=1, keepdims=True))

    def save(self) -> None:
        name = f"model.ckpt-{self.step}"
        np.savez(self.checkpoints / f"{name}.npz", weights=self.weights, biases=self.biases)
        (self.checkpoints / "checkpoint").write_text(f'model_checkpoint_path: "{name}"\n')


class Summaries:
    """An event file: each record is a length, its check, an event, and its check."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        path = folder / f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}"
        self.file = path.open("wb", buffering=0)
        self._write(_bytes(3, b"brain.Event:2"))

    def add(self, step: int, **values: float) -> None:
        scalars = [_bytes(1, name.encode()) + b"\x15" + struct.pack("<f", value) for name, value in values.items()]
        self._write(b"\x10" + _number(step) + _bytes(5, b"".join(_bytes(1, scalar) for scalar in scalars)))

    def _write(self, fields: bytes) -> None:
        event = b"\x09" + struct.pack("<d", time.time()) + fields
        length = struct.pack("<Q", len(event))
        self.file.write(length + _check(length) + event + _check(event))


def load(folder: Path, name: str) -> tuple[Array, Array]:
    with np.load(folder / f"mnist-{name}.npz") as loaded:
        return loaded["inputs"].astype(np.float64), np.eye(10)[loaded["targets"]]


def batches(inputs: Array, targets: Array, random: np.random.RandomState) -> Iterator[tuple[Array, Array]]:
    order = random.permutation(len(inputs))
    for begin in range(0, len(order), BATCH):
        chosen = order[begin : begin + BATCH]
        yield inputs[chosen], targets[chosen]


def score(probabilities: Array, targets: Array) -> tuple[float, float]:
    """Cross entropy, and the share of right answers."""
    error = -np.log((probabilities * targets).sum(axis=1) + 1e-12).mean()
    return float(error), float((probabilities.argmax(axis=1) == targets.argmax(axis=1)).mean())


def _number(value: int) -> bytes:
    """As protocol buffers write whole numbers: seven bits to a byte, the last one without its highest bit."""
    head = b""
    while value > 127:
        head += bytes([value & 127 | 128])
        value >>= 7
    return head + bytes([value])


def _bytes(field: int, data: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _number(len(data)) + data


def _check(data: bytes) -> bytes:
    """CRC-32C with the mask of TensorFlow's records."""
    check = 0xFFFFFFFF
    for byte in data:
        check ^= byte
        for _ in range(8):
            check = check >> 1 ^ (0x82F63B78 if check & 1 else 0)
    check ^= 0xFFFFFFFF
    return struct.pack("<I", ((check >> 15 | check << 17) + 0xA282EAD8) & 0xFFFFFFFF)


if __name__ == "__main__":
    main()
