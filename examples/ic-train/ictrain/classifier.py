"""A frozen feature extractor with a trained layer on top, as in transfer learning, and small."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ictrain.images import SIDE, Array, Split

FEATURES = 96
MIDDLE = 0.5  # of what a picture's values can be


def filters(base: str) -> Array:
    """The base network: fixed random filters, the same ones for the same name."""
    random = np.random.default_rng(zlib.crc32(base.encode()))
    values = SIDE * SIDE * 3
    return random.normal(0, 1 / np.sqrt(values), (values, FEATURES)).astype(np.float32)


def extract(base: str, images: Array) -> Array:
    """What the base network sees."""
    flat = images.reshape(len(images), -1) - MIDDLE
    return np.asarray(np.maximum(0, flat @ filters(base)), np.float32)


def softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float32)


@dataclass
class Classifier:
    """One dense layer, trained with Adam."""

    classes: int
    learning_rate: float
    label_smoothing: float
    dropout: float
    seed: int
    steps: int = 0
    weights: dict[str, Array] = field(default_factory=dict)
    _moments: dict[str, tuple[Array, Array]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self.weights = {
            "kernel": self._random.normal(0, 0.1, (FEATURES, self.classes)).astype(np.float32),
            "bias": np.zeros(self.classes, np.float32),
        }

    def predict(self, features: Array) -> Array:
        return softmax(features @ self.weights["kernel"] + self.weights["bias"])

    def fit_epoch(self, features: Array, labels: NDArray[np.int64], batch_size: int) -> None:
        for chosen in self._batches(len(labels), batch_size):
            self._step(features[chosen], self._targets(labels[chosen]))

    def _batches(self, count: int, size: int) -> Iterator[NDArray[np.int64]]:
        order = self._random.permutation(count)
        yield from (order[start : start + size] for start in range(0, count, size))

    def _targets(self, labels: NDArray[np.int64]) -> Array:
        hot = np.eye(self.classes, dtype=np.float32)[labels]
        return hot * (1 - self.label_smoothing) + self.label_smoothing / self.classes

    def _step(self, features: Array, targets: Array) -> None:
        kept = (self._random.random(features.shape) >= self.dropout) / max(1e-6, 1 - self.dropout)
        seen = (features * kept).astype(np.float32)
        error = np.asarray((self.predict(seen) - targets) / len(targets), np.float32)
        self.steps += 1
        self._adam("kernel", seen.T @ error)
        self._adam("bias", np.asarray(error.sum(axis=0), np.float32))

    def _adam(self, name: str, slope: Array) -> None:
        first, second = self._moments.get(name, (np.zeros_like(slope), np.zeros_like(slope)))
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        self._moments[name] = (first, second)
        upwards, spread = first / (1 - 0.9**self.steps), second / (1 - 0.999**self.steps)
        self.weights[name] = self.weights[name] - self.learning_rate * upwards / (np.sqrt(spread) + 1e-7)


def build(config: dict[str, Any], classes: int, seed: int) -> Classifier:
    return Classifier(
        classes=classes,
        learning_rate=config["learning_rate"],
        label_smoothing=config["label_smoothing"],
        dropout=config["classifier"]["dropout"],
        seed=seed,
    )


def measure(model: Classifier, features: Array, split: Split) -> dict[str, float]:
    """What the curves in TensorBoard show."""
    likely = model.predict(features)
    loss = -np.log(np.maximum(likely[np.arange(len(split.labels)), split.labels], 1e-7)).mean()
    return {"loss": float(loss), "accuracy": float((likely.argmax(axis=1) == split.labels).mean())}
