"""Trains a small neural network on pictures of digits. Needs numpy, and runs with or without a yard.

    python train.py --lr 0.1 --width 32 --epochs 20
    runyard sweep -f sweep.yaml

The pictures are 8 by 8: ten drawn digits, some moved by a pixel, with noise and broken strokes. After each epoch the
loss and the accuracy on other pictures are reported. The last checkpoint is picked up again when RUNYARD_RESUME is set
or --resume is given.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from runyard import job

Array = np.ndarray[Any, np.dtype[np.float64]]
Weights = dict[str, Any]  # of arrays, by name

GLYPHS = """
.###.. ..#... .###.. .###.. ...##. #####. .###.. #####. .###.. .###..
#...#. .##... #...#. #...#. ..#.#. #..... #..... ....#. #...#. #...#.
#..##. ..#... ....#. ..##.. .#..#. ####.. ####.. ...#.. .###.. .####.
##..#. ..#... ..##.. ....#. #####. ....#. #...#. ..#... #...#. ....#.
#...#. ..#... .#.... #...#. ...#.. #...#. #...#. ..#... #...#. ....#.
.###.. .###.. #####. .###.. ...#.. .###.. .###.. ..#... .###.. .###..
"""
SIDE = 8


def main() -> None:
    options = parse_options()
    train, validation = make_pictures(options.pictures, seed=1), make_pictures(2000, seed=2)
    output, checkpoints = directory("OUTPUT_DIR", "output"), directory("CHECKPOINT_DIR", "output/checkpoints")
    weights, first = starting_point(options, checkpoints)
    loss, accuracy = evaluate(weights, *validation)
    for epoch in range(first, options.epochs + 1):
        train_epoch(weights, *train, options, np.random.default_rng([options.seed, epoch]))
        loss, accuracy = evaluate(weights, *validation)
        save_checkpoint(checkpoints / "last.npz", weights, epoch)
        job.log(step=epoch, **{"val/loss": loss, "val/accuracy": accuracy})
        print(f"epoch {epoch:3d}  loss {loss:.4f}  accuracy {accuracy:.4f}", flush=True)
        if job.should_stop():
            return
        time.sleep(options.pause)
    np.savez(output / "model.npz", **weights)
    result = {"accuracy": accuracy, "loss": loss, "epochs": options.epochs, "lr": options.lr, "width": options.width}
    (output / "result.json").write_text(json.dumps(result, indent=2) + "\n")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate")
    parser.add_argument("--width", type=int, default=32, help="hidden units")
    parser.add_argument("--batch", type=int, default=32, help="pictures for one step down the slope")
    parser.add_argument("--batches", type=int, help="of one epoch (default: all pictures)")
    parser.add_argument("--scale", type=float, default=1.0, help="of the weights at the beginning")
    parser.add_argument("--decay", type=float, default=0.0, help="by which weights shrink")
    parser.add_argument("--epochs", type=int, default=20, help="rounds through the pictures")
    parser.add_argument("--pictures", type=int, default=20000, help="to learn from")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to wait after each epoch")
    seed, resume = int(os.environ.get("RUNYARD_SEED", "0")), bool(os.environ.get("RUNYARD_RESUME"))
    parser.add_argument("--seed", type=int, default=seed, help="of everything random")
    parser.add_argument("--resume", action="store_true", default=resume, help="go on from the last checkpoint")
    return parser.parse_args()


def directory(variable: str, default: str) -> Path:
    path = Path(os.environ.get(variable, default))
    path.mkdir(parents=True, exist_ok=True)
    return path


def make_pictures(count: int, seed: int) -> tuple[Array, Any]:
    """`count` pictures, one row each, and the digits they show; the same for every run."""
    rng, drawn = np.random.default_rng(seed), draw_digits()
    digits = rng.integers(0, 10, count)
    rows, columns = rng.integers(0, 2, count), rng.integers(0, 2, count)
    pictures = np.zeros((count, SIDE, SIDE))
    for index, digit in enumerate(digits):
        pictures[index, rows[index] : rows[index] + 6, columns[index] : columns[index] + 6] = drawn[digit]
    pictures *= rng.random(pictures.shape) > 0.15
    pictures += rng.normal(0, 0.3, pictures.shape)
    return pictures.reshape(count, -1), digits


def draw_digits() -> Array:
    lines = [line.split() for line in GLYPHS.split("\n") if line]
    return np.array([[[mark == "#" for mark in line[digit]] for line in lines] for digit in range(10)], float)


def starting_point(options: argparse.Namespace, checkpoints: Path) -> tuple[Weights, int]:
    """The weights to go on from, and the epoch to do next."""
    last = checkpoints / "last.npz"
    if options.resume and last.exists():
        with np.load(last) as saved:
            epoch = int(saved["epoch"])
            print(f"resuming after epoch {epoch}", flush=True)
            return {name: saved[name] for name in saved.files if name != "epoch"}, epoch + 1
    rng, inputs = np.random.default_rng(options.seed), SIDE * SIDE
    width, scale = options.width, options.scale
    return {
        "hidden": rng.normal(0, scale * (2 / inputs) ** 0.5, (inputs, width)),
        "hidden_bias": np.zeros(width),
        "output": rng.normal(0, scale * (1 / width) ** 0.5, (width, 10)),
        "output_bias": np.zeros(10),
    }, 1


def train_epoch(
    weights: Weights, pictures: Array, digits: Any, options: argparse.Namespace, rng: np.random.Generator
) -> None:
    order = rng.permutation(len(digits))[: options.batches and options.batches * options.batch]
    for start in range(0, len(order), options.batch):
        batch = order[start : start + options.batch]
        for name, slope in gradients(weights, pictures[batch], digits[batch]).items():
            weights[name] -= options.lr * (slope + options.decay * weights[name])


def gradients(weights: Weights, pictures: Array, digits: Any) -> Weights:
    hidden, probabilities = forward(weights, pictures)
    error = probabilities
    error[np.arange(len(digits)), digits] -= 1
    error /= len(digits)
    below = (error @ weights["output"].T) * (hidden > 0)
    return {
        "hidden": pictures.T @ below,
        "hidden_bias": below.sum(0),
        "output": hidden.T @ error,
        "output_bias": error.sum(0),
    }


def forward(weights: Weights, pictures: Array) -> tuple[Array, Array]:
    hidden = np.maximum(pictures @ weights["hidden"] + weights["hidden_bias"], 0)
    scores = hidden @ weights["output"] + weights["output_bias"]
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return hidden, powers / powers.sum(1, keepdims=True)


def evaluate(weights: Weights, pictures: Array, digits: Any) -> tuple[float, float]:
    probabilities = forward(weights, pictures)[1]
    loss = -np.log(np.maximum(probabilities[np.arange(len(digits)), digits], 1e-12)).mean()
    return float(loss), float((probabilities.argmax(1) == digits).mean())


def save_checkpoint(path: Path, weights: Weights, epoch: int) -> None:
    """Whole or not at all: written beside and renamed, so that a kill never leaves half a checkpoint."""
    beside = path.with_suffix(".tmp.npz")
    with beside.open("wb") as file:
        np.savez(file, epoch=np.array(epoch), **weights)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


if __name__ == "__main__":
    main()
