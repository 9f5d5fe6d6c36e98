"""Tells for each pixel of a page which layer it belongs to, with the models that the trainer wrote.

    python classify.py page output --write labels.png

The layer whose model is surest wins, in the order of the ports. Where the page's own layers are there, it prints how
often that is right: for each layer, and the mean over the layers, which is one by their number for a blind guess.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from backend import keras, torch
from network import tensors
from page import Array, Page, read_colours
from PIL import Image
from request import IMAGE, BadInput, find_layers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", type=Path, help="the directory with the page")
    parser.add_argument("models", type=Path, help="the directory with the models")
    parser.add_argument("--write", type=Path, metavar="FILE", help="an image of the layers' numbers, spread over grey")
    options = parser.parse_args()
    try:
        found = classify(read_colours(options.inputs / IMAGE), load_models(options.models))
        if options.write:
            Image.fromarray((found * (255 // max(1, found.max()))).astype(np.uint8)).save(options.write)
        print(json.dumps(score(options.inputs, found)))
    except BadInput as error:
        print(f"classify: {error}", file=sys.stderr)
        return 2
    return 0


def load_models(directory: Path) -> list[Any]:
    """In the order of their ports."""
    if not (directory / "result.json").is_file():
        raise BadInput(f"{directory} has no result.json, so no training has finished there")
    ports = [model["port"] for model in json.loads((directory / "result.json").read_text())["models"]]
    return [keras.models.load_model(directory / f"{port}.hdf5", compile=False) for port in ports]


def classify(colours: Array, models: list[Any]) -> Array:
    """The number of the surest model, for each pixel."""
    best, labels = np.full(colours.shape[:2], -1.0, np.float32), np.zeros(colours.shape[:2], np.uint8)
    for number, model in enumerate(models):
        sure = answers(colours, model)
        labels[sure > best] = number
        np.maximum(best, sure, out=best)
    return labels


def answers(colours: Array, model: Any) -> Array:
    """What one model says of each pixel. Patches overlap by half, and what they say is averaged: edges see less."""
    _, height, width, _ = model.input_shape
    if colours.shape[0] < height or colours.shape[1] < width:
        raise BadInput(f"the page is smaller than a patch of {height} × {width}")
    sums, counts = np.zeros((2, *colours.shape[:2]), np.float32)
    for row in starts(colours.shape[0], height):
        columns = starts(colours.shape[1], width)
        batch = np.stack([colours[row : row + height, column : column + width] for column in columns])
        with torch.no_grad():
            said = keras.ops.convert_to_numpy(model(tensors(batch), training=False))[..., 0]
        for column, patch in zip(columns, said, strict=True):
            sums[row : row + height, column : column + width] += patch
            counts[row : row + height, column : column + width] += 1
    mean: Array = sums / counts
    return mean


def starts(length: int, side: int) -> list[int]:
    return sorted({*range(0, length - side, side // 2), length - side})


def score(inputs: Path, found: Array) -> dict[str, Any]:
    layers = find_layers(inputs)
    page = Page(inputs, layers)
    right = {layer.name: float((found[page.mask(layer)] == number).mean()) for number, layer in enumerate(layers)}
    return {"right": right, "mean": sum(right.values()) / len(right), "chance": 1 / len(right)}


if __name__ == "__main__":
    sys.exit(main())
