"""One run: from a configuration to scores, with early stopping, the best model kept, and curves on the way."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from ictrain import classifier, images, scores
from ictrain.events import EventFile
from ictrain.record import Record, write_json

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
    config["epoch_count"] = _fit(record, model, data)
    seen = classifier.extract(config["model"]["base"], data.test.images)
    config["scores"] = scores.score(model.predict(seen), data.test.labels)
    config["time"] = time.monotonic() - began
    record.save()
    return dict(config["scores"])


def _fit(record: Record, model: classifier.Classifier, data: images.Dataset) -> int:
    """How many epochs were trained; the model is left with the weights of the best one where that was asked for."""
    config = record.metadata
    base, stopping = config["model"]["base"], Stopping(config["callbacks"]["early_stopping"])
    parts = {"train": data.train, "validation": data.validation}
    seen = {name: classifier.extract(base, split.images) for name, split in parts.items()}
    curves = {name: EventFile(record.directory / name) for name in parts}
    epoch = 0
    for epoch in range(1, int(config["max_epochs"]) + 1):
        model.fit_epoch(seen["train"], data.train.labels, int(config["batch_size"]))
        measured = {name: classifier.measure(model, seen[name], split) for name, split in parts.items()}
        for name, values in measured.items():
            curves[name].scalars(epoch - 1, {f"epoch_{what}": value for what, value in values.items()})
        print(_line(epoch, measured), flush=True)
        if stopping.is_best(measured, model):
            _save_model(record.directory / "best_model", model, data.names, base)
        if stopping.is_over(epoch):
            break
    for file in curves.values():
        file.close()
    stopping.restore(model)
    return epoch


def _line(epoch: int, measured: dict[str, dict[str, float]]) -> str:
    train, validation = measured["train"], measured["validation"]
    return (
        f"epoch {epoch:3d}  loss {train['loss']:.4f}  accuracy {train['accuracy']:.3f}  "
        f"val_loss {validation['loss']:.4f}  val_accuracy {validation['accuracy']:.3f}"
    )


class Stopping:
    """Ends training when the monitored value has not become better for a while."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._best, self._waited = float("inf"), 0
        self._weights: dict[str, images.Array] = {}

    def is_best(self, measured: dict[str, dict[str, float]], model: classifier.Classifier) -> bool:
        """Whether the monitored value has never been better; then these weights are kept."""
        part = "validation" if self._config["monitor"].startswith("val_") else "train"
        value = measured[part][self._config["monitor"].removeprefix("val_")]
        value = -value if "accuracy" in self._config["monitor"] else value
        if value >= self._best:
            self._waited += 1
            return False
        self._best, self._waited = value, 0
        self._weights = {name: weights.copy() for name, weights in model.weights.items()}
        return True

    def is_over(self, epoch: int) -> bool:
        return epoch > int(self._config["start_from_epoch"]) and self._waited >= int(self._config["patience"])

    def restore(self, model: classifier.Classifier) -> None:
        if self._config["restore_best_weights"] and self._weights:
            model.weights = self._weights


def _save_model(directory: Path, model: classifier.Classifier, names: list[str], base: str) -> None:
    """In full under another name, then in place: a run that is killed leaves the last whole model."""
    directory.mkdir(exist_ok=True)
    fresh = directory / ".weights.npz"
    with fresh.open("wb") as file:
        np.savez(file, kernel=model.weights["kernel"], bias=model.weights["bias"])
    fresh.replace(directory / "weights.npz")
    write_json(directory / "model.json", {"base": base, "labels": names, "side": images.SIDE})


def load_model(directory: Path) -> tuple[dict[str, Any], classifier.Classifier]:
    """A saved model, ready to predict."""
    described = json.loads((directory / "model.json").read_text(encoding="utf-8"))
    model = classifier.Classifier(len(described["labels"]), 0.0, 0.0, 0.0, seed=0)
    with np.load(directory / "weights.npz") as weights:
        model.weights = {name: weights[name] for name in ("kernel", "bias")}
    return described, model
