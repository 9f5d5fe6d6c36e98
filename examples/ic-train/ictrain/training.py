"""One run: from a configuration to scores, with early stopping, the best model kept, and curves on the way."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ictrain import classifier, images, saved_model, scores
from ictrain.events import EventFile
from ictrain.record import Record

SEEDS = ("seed_split_test", "seed_split_val", "seed_shuffle")


def run(record: Record, seed: int) -> dict[str, float]:
    """Train as the record's configuration says; the record is saved at the start, before fitting, and at the end."""
    began = time.monotonic()
    config = record.metadata
    seeds = {name: seed + number for number, name in enumerate(SEEDS)}
    config["dataset"].update(seeds)
    record.save()
    data = images.load(config["dataset"], seeds)
    record.write_labels(data.names)
    record.save()
    model = classifier.build(config["model"], len(data.names), seed)
    config["epoch_count"] = fit(record, model, data)
    seen = classifier.extract(config["model"]["base"], data.test.images)
    config["scores"] = scores.score(model.predict(seen), data.test.labels)
    config["time"] = time.monotonic() - began
    record.save()
    return dict(config["scores"])


def fit(record: Record, model: classifier.Classifier, data: images.Dataset) -> int:
    """How many epochs were trained; the model is left with the weights of the best one where that was asked for."""
    config = record.metadata
    best = Best(record.directory / "best_model", config["model"]["base"])
    stopping = Stopping(config["callbacks"]["early_stopping"])
    epoch = 0
    for epoch, measured in enumerate(_epochs(record, model, data), 1):
        best.see(measured, model)
        if stopping.is_over(epoch, measured, model):
            break
    stopping.restore(model)
    return epoch


def _epochs(record: Record, model: classifier.Classifier, data: images.Dataset) -> Iterator[dict[str, float]]:
    """Train epoch by epoch, with curves on the way; yields what was measured, under the names that Keras gives it."""
    config = record.metadata
    parts = {"train": data.train, "validation": data.validation}
    seen = {name: classifier.extract(config["model"]["base"], split.images) for name, split in parts.items()}
    with contextlib.ExitStack() as files:
        curves = {name: files.enter_context(contextlib.closing(EventFile(record.directory / name))) for name in parts}
        for epoch in range(int(config["max_epochs"])):
            model.fit_epoch(seen["train"], data.train.labels, int(config["batch_size"]))
            measured = {name: classifier.measure(model, seen[name], split) for name, split in parts.items()}
            for name, values in measured.items():
                curves[name].scalars(epoch, {f"epoch_{what}": value for what, value in values.items()})
            of_both = measured["train"] | {f"val_{what}": value for what, value in measured["validation"].items()}
            print(_line(epoch + 1, of_both), flush=True)
            yield of_both


def _line(epoch: int, measured: dict[str, float]) -> str:
    return (
        f"epoch {epoch:3d}  loss {measured['loss']:.4f}  accuracy {measured['accuracy']:.3f}  "
        f"val_loss {measured['val_loss']:.4f}  val_accuracy {measured['val_accuracy']:.3f}"
    )


class Best:
    """Keeps the model with the lowest `val_loss` on disk, whatever early stopping looks at."""

    def __init__(self, directory: Path, base: str) -> None:
        self._directory, self._filters = directory, classifier.filters(base)
        self._lowest = float("inf")

    def see(self, measured: dict[str, float], model: classifier.Classifier) -> None:
        if measured["val_loss"] < self._lowest:
            self._lowest = measured["val_loss"]
            saved_model.write(self._directory, self._filters, model.weights)


class Stopping:
    """Keras's early stopping: ends training when the monitored value has not become better for a while."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._best, self._waited = float("inf"), 0
        self._weights: dict[str, images.Array] = {}

    def is_over(self, epoch: int, measured: dict[str, float], model: classifier.Classifier) -> bool:
        """The first epochs do not count; later, weights are kept where the value has never been better."""
        if epoch <= int(self._config["start_from_epoch"]):
            return False
        monitor = self._config["monitor"]
        value = -measured[monitor] if "accuracy" in monitor else measured[monitor]
        if value < self._best:
            self._best, self._waited = value, 0
            self._weights = {name: weights.copy() for name, weights in model.weights.items()}
            return False
        self._waited += 1
        return self._waited >= int(self._config["patience"])

    def restore(self, model: classifier.Classifier) -> None:
        if self._config["restore_best_weights"] and self._weights:
            model.weights = self._weights
