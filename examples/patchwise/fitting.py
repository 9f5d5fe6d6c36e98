"""Trains the network of one layer: epochs, validation, early stopping, and a checkpoint to go on from."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import network
import numpy as np
from backend import be_repeatable, keras, torch
from checkpoints import Checkpoints, Progress, Saved
from page import Array
from patches import Patches
from request import Settings

SAVE_EVERY_S = 60.0


class Interrupted(Exception):
    """The training was asked to stop, and its checkpoint is written."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """The training of one layer, and whom it tells."""

    name: str
    number: int
    patches: Patches
    settings: Settings
    checkpoints: Checkpoints
    warned: Callable[[], bool]  # the run is about to end: save, and go
    report: Callable[[str, dict[str, Any]], None]


class Fit:
    def __init__(self, task: Task, saved: Saved | None) -> None:
        self._task, self._settings = task, task.settings
        self._validation, self._training = task.patches.split(task.settings.validation)
        self._model = self._new_model()
        self._optimizer = keras.optimizers.Adam(task.settings.learning_rate)
        self._optimizer.build(self._model.trainable_variables)
        self._progress, self._best = Progress(), self._model.get_weights()
        self._saved_at = time.monotonic()
        if saved:
            self._restore(saved)

    def run(self) -> tuple[Any, Progress]:
        """The best model that was seen, and how it went."""
        while not self._progress.over:
            self._train_epoch()
            self._judge(*self._validate())
            self._save()
        self._model.set_weights(self._best)
        return self._model, self._progress

    def _new_model(self) -> Any:
        """Draws networks until one answers: see network.is_alive."""
        settings, (colours, _) = self._settings, next(self._training.batches(self._settings.batch))
        for draw in range(100):
            seeds = np.random.SeedSequence([settings.seed, self._task.number, draw])
            be_repeatable(int(seeds.generate_state(1)[0]))
            model = network.build(settings.patch_height, settings.patch_width, settings.filters)
            if network.is_alive(model, colours):
                break
        return model

    def _train_epoch(self) -> None:
        progress, settings = self._progress, self._settings
        rng = np.random.default_rng([settings.seed, self._task.number, progress.epoch])
        patches = self._training.shuffled(rng)
        self._go_on_unless_warned()
        for colours, mask in patches.batches(settings.batch, first=progress.step):
            loss, accuracy = self._learn(colours, mask)
            progress.step += 1
            progress.loss += loss * len(colours)
            progress.accuracy += accuracy * len(colours)
            self._go_on_unless_warned()

    def _learn(self, colours: Array, mask: Array) -> tuple[float, float]:
        variables = self._model.trainable_variables
        self._model.zero_grad()
        loss, accuracy = self._measure(colours, mask, training=True)
        loss.backward()
        with torch.no_grad():
            self._optimizer.apply([variable.value.grad for variable in variables], variables)
        return loss.item(), accuracy.item()

    def _measure(self, colours: Array, mask: Array, *, training: bool) -> tuple[Any, Any]:
        given = network.tensors(colours)
        wanted = torch.from_numpy(mask).to(given.device)
        answers = self._model(given, training=training)
        loss = keras.losses.binary_crossentropy(wanted.float(), answers).mean()
        return loss, ((answers > 0.5) == wanted).float().mean()

    def _validate(self) -> tuple[float, float]:
        loss, accuracy = 0.0, 0.0
        for colours, mask in self._validation.batches(self._settings.batch):
            with torch.no_grad():
                found = self._measure(colours, mask, training=False)
            loss += found[0].item() * len(colours)
            accuracy += found[1].item() * len(colours)
            self._go_on_unless_warned()
        return loss / len(self._validation), accuracy / len(self._validation)

    def _judge(self, loss: float, accuracy: float) -> None:
        """The end of an epoch: tell how it went, keep the model if it is the best, and stop when none was for long."""
        progress, trained = self._progress, len(self._training)
        values = {"loss": progress.loss / trained, "accuracy": progress.accuracy / trained}
        values |= {"val_loss": loss, "val_accuracy": accuracy}
        progress.epoch, progress.step, progress.loss, progress.accuracy = progress.epoch + 1, 0, 0.0, 0.0
        if accuracy > progress.best:
            progress.best, progress.best_epoch = accuracy, progress.epoch
            self._best = self._model.get_weights()
        if loss < progress.least:
            progress.least, progress.least_epoch = loss, progress.epoch
        # The accuracy of a thin layer stands still at first while the loss already falls: "nowhere" is right mostly.
        waited = progress.epoch - max(progress.best_epoch, progress.least_epoch)
        progress.over = progress.epoch >= self._settings.epochs or waited >= self._settings.patience
        progress.history.append({"step": progress.epoch, **values})
        self._task.report(self._task.name, progress.history[-1])

    def _go_on_unless_warned(self) -> None:
        if self._task.warned():
            self._save()
            raise Interrupted
        if time.monotonic() > self._saved_at + SAVE_EVERY_S:
            self._save()

    def _save(self) -> None:
        optimizer = [keras.ops.convert_to_numpy(variable) for variable in self._optimizer.variables]
        self._task.checkpoints.save(
            self._task.name, self._progress, weights=self._model.get_weights(), optimizer=optimizer, best=self._best
        )
        self._saved_at = time.monotonic()

    def _restore(self, saved: Saved) -> None:
        self._progress, self._best = saved.progress, saved.arrays["best"]
        self._model.set_weights(saved.arrays["weights"])
        for variable, value in zip(self._optimizer.variables, saved.arrays["optimizer"], strict=True):
            variable.assign(value)
