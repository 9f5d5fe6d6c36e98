"""Trains one network for each layer of a page, from patches around the layer's pixels.

    python trainer.py INPUTS --patch-height 256 --patch-width 256 --epochs 15

INPUTS is a directory with image.png, regions.png, background.png, and layer_0.png, layer_1.png … (or music.png,
staff.png and text.png). In every file but the first, opaque pixels are the marked ones. The models go to OUTPUT_DIR
under the names of their ports, such as `Background Model.hdf5` and `Model 0.hdf5`; metrics.jsonl tells how it goes.

SIGUSR1 and SIGTERM have it write a checkpoint and exit with 75. With RUNYARD_RESUME in the environment, or --resume,
it goes on from there. Bad input is one sentence and exit code 2.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
from checkpoints import Checkpoints, Saved, origin_of
from page import Page
from patches import Patches, count_pixels, sample, sample_limit
from request import IMAGE, REGIONS, BadInput, Layer, Settings, add_flags, find_layers, settings_of

BAD_INPUT, TRY_AGAIN = 2, 75  # the second as in sysexits.h


def main() -> int:
    options = parse_options()
    notice = Notice()
    try:
        return Training(options, settings_of(options), notice).run()
    except BadInput as error:
        print(f"trainer: {error}", file=sys.stderr)
        return BAD_INPUT


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", type=Path, metavar="INPUTS", help="the directory with the page and its layers")
    add_flags(parser)
    output = Path(os.environ.get("OUTPUT_DIR", "output"))
    checkpoints = Path(os.environ.get("CHECKPOINT_DIR", output / "checkpoints"))
    resume = bool(os.environ.get("RUNYARD_RESUME"))
    parser.add_argument("--output", type=Path, default=output, help="default: $OUTPUT_DIR, or output")
    parser.add_argument("--checkpoints", type=Path, default=checkpoints, help="default: $CHECKPOINT_DIR")
    parser.add_argument("--resume", action="store_true", default=resume, help="go on from the last checkpoint")
    return parser.parse_args()


class Notice:
    """Notes that the run is about to end. The training looks at it between two batches."""

    def __init__(self) -> None:
        self.came = False
        for number in (signal.SIGUSR1, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, *_: object) -> None:
        self.came = True


class Training:
    def __init__(self, options: argparse.Namespace, settings: Settings, notice: Notice) -> None:
        self._settings, self._notice = settings, notice
        self._layers = find_layers(options.inputs)
        self._page = Page(options.inputs, self._layers)
        self._limit = sample_limit({layer: self._count(layer) for layer in self._layers}, settings)
        files = [options.inputs / name for name in (IMAGE, REGIONS, *(layer.file for layer in self._layers))]
        self._checkpoints = Checkpoints(options.checkpoints, origin_of(settings, files))
        self._saved = self._earlier(resume=options.resume)
        options.output.mkdir(parents=True, exist_ok=True)
        self._output = options.output

    def run(self) -> int:
        # Loading PyTorch takes seconds: whoever gave bad input has heard of it by now.
        from fitting import Interrupted

        self._begin_metrics()
        try:
            results = [self._train(number, layer) for number, layer in enumerate(self._layers)]
        except Interrupted:
            print("saved a checkpoint before the end; resume to go on from it", flush=True)
            return TRY_AGAIN
        (self._output / "result.json").write_text(json.dumps({"models": results}, indent=2) + "\n")
        return 0

    def _train(self, number: int, layer: Layer) -> dict[str, Any]:
        from fitting import Fit, Task
        from hdf5 import write_model

        patches = self._sample(number, layer)
        task = Task(
            name=layer.name, number=number, patches=patches, settings=self._settings, checkpoints=self._checkpoints,
            warned=lambda: self._notice.came, report=self._report,
        )  # fmt: skip
        model, progress = Fit(task, self._saved.get(layer)).run()
        write_model(model, self._output / f"{layer.port}.hdf5")
        best = {"epochs": progress.epoch, "best_epoch": progress.best_epoch, "val_accuracy": progress.best}
        return {"port": layer.port, "layer": layer.name, "patches": len(patches), **best}

    def _sample(self, number: int, layer: Layer) -> Patches:
        rng = np.random.default_rng([self._settings.seed, number])
        return sample(self._page.colours, self._page.mask(layer), self._limit, self._settings, rng)

    def _count(self, layer: Layer) -> int:
        return count_pixels(self._page.mask(layer), self._settings)

    def _earlier(self, *, resume: bool) -> dict[Layer, Saved]:
        """What is done already. Who begins anew leaves nothing behind for a later attempt to mistake for its own."""
        found = {}
        for layer in self._layers:
            if not resume:
                self._checkpoints.forget(layer.name)
            elif saved := self._checkpoints.load(layer.name):
                found[layer] = saved
        return found

    def _begin_metrics(self) -> None:
        """What earlier attempts found comes first: their files are elsewhere, and one curve should be in one file."""
        self._metrics = (self._output / "metrics.jsonl").open("w")
        for layer, saved in self._saved.items():
            done = saved.progress
            print(f"resuming {layer.name} after epoch {done.epoch} and {done.step} batches", flush=True)
            for values in done.history:
                self._write_metrics(layer.name, values)

    def _report(self, name: str, values: dict[str, Any]) -> None:
        self._write_metrics(name, values)
        shown = "  ".join(f"{key} {value:.4f}" for key, value in values.items() if key != "step")
        print(f"{name}: epoch {values['step']:3d}  {shown}", flush=True)

    def _write_metrics(self, name: str, values: dict[str, Any]) -> None:
        named = {key if key == "step" else f"{name}/{key}": value for key, value in values.items()}
        self._metrics.write(json.dumps(named) + "\n")
        self._metrics.flush()


if __name__ == "__main__":
    sys.exit(main())
