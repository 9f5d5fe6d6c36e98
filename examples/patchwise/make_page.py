"""Draws a page of music with its layers, so that the trainer can be tried without a scan.

    python make_page.py page --height 600 --width 480 --seed 1

The directory gets image.png, background.png, regions.png, and the layers as layer_0.png (notes), layer_1.png (staff
lines) and layer_2.png (text); with --named they are music.png, staff.png and text.png. A layer shows the image where
it is opaque, and is transparent elsewhere.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

Array = np.ndarray[Any, np.dtype[Any]]

BACKGROUND, NOTES, STAFF, TEXT = range(4)
INKS = {BACKGROUND: (226, 208, 170), NOTES: (38, 30, 28), STAFF: (168, 62, 44), TEXT: (74, 58, 96)}
MARGIN, SYSTEM, LINE = 16, 72, 8  # pixels: around the page, from staff to staff, from line to line
SYLLABLES = ("glo", "ri", "a", "in", "ex", "cel", "sis", "de", "o", "et", "ter", "ra", "pax")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--height", type=int, default=600)
    parser.add_argument("--width", type=int, default=480)
    parser.add_argument("--seed", type=int, default=0, help="another number, another page")
    parser.add_argument("--named", action="store_true", help="music.png, staff.png, text.png instead of layer_N.png")
    options = parser.parse_args()
    write_page(options.directory, options.height, options.width, options.seed, named=options.named)


def write_page(directory: Path, height: int, width: int, seed: int, *, named: bool = False) -> None:
    rng = np.random.default_rng(seed)
    labels = draw_labels(height, width, rng)
    image = colour(labels, rng)
    directory.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(directory / "image.png")
    names = ("music", "staff", "text") if named else ("layer_0", "layer_1", "layer_2")
    for label, name in enumerate(("background", *names)):
        write_layer(directory / f"{name}.png", image, labels == label)
    regions = np.zeros(labels.shape, bool)
    regions[MARGIN // 2 : -MARGIN // 2, MARGIN // 2 : -MARGIN // 2] = True
    write_layer(directory / "regions.png", image, regions)


def write_layer(path: Path, image: Array, mask: Array) -> None:
    layer = np.dstack([image, np.full(mask.shape, 255, np.uint8)])
    layer[~mask] = 0
    Image.fromarray(layer).save(path)


def draw_labels(height: int, width: int, rng: np.random.Generator) -> Array:
    """Which layer each pixel belongs to. What is drawn later lies on top."""
    labels = Image.new("L", (width, height), BACKGROUND)
    pen = ImageDraw.Draw(labels)
    pen.fontmode = "1"  # no smoothing: a shade of 3 would be another layer's number
    for top in range(MARGIN, height - SYSTEM, SYSTEM):
        draw_staff(pen, top, width)
        draw_notes(pen, top, width, rng)
        draw_text(pen, top + 5 * LINE, width, rng)
    return np.asarray(labels)


def draw_staff(pen: Any, top: int, width: int) -> None:
    for line in range(5):
        pen.line((MARGIN, top + line * LINE, width - MARGIN, top + line * LINE), STAFF, 2)


def draw_notes(pen: Any, top: int, width: int, rng: np.random.Generator) -> None:
    x = MARGIN + int(rng.integers(8, 20))
    while x < width - MARGIN - 12:
        y = top + int(rng.integers(0, 9)) * LINE // 2
        pen.rectangle((x, y - 4, x + 8, y + 4), NOTES)
        if rng.random() < 0.5:
            pen.line((x + 8, y, x + 8, y + 18), NOTES, 2)
        x += int(rng.integers(14, 34))


def draw_text(pen: Any, top: int, width: int, rng: np.random.Generator) -> None:
    x = MARGIN + int(rng.integers(0, 10))
    while x < width - MARGIN - 30:
        word = str(rng.choice(SYLLABLES))
        pen.text((x, top), word, TEXT, font_size=20, stroke_width=1)
        x += int(pen.textlength(word, font_size=20)) + int(rng.integers(6, 16))


def colour(labels: Array, rng: np.random.Generator) -> Array:
    """Ink on parchment: each layer in its colour, paper that is darker here and there, and grain everywhere."""
    inks = np.array([INKS[label] for label in range(len(INKS))], float)
    rows, columns = np.indices(labels.shape)
    stains = 10 * np.sin(rows / 61 + rng.random() * 6) * np.cos(columns / 47 + rng.random() * 6)
    grain = rng.normal(0, 12, (*labels.shape, 3))
    coloured: Array = np.clip(inks[labels] + stains[..., np.newaxis] + grain, 0, 255).astype(np.uint8)
    return coloured


if __name__ == "__main__":
    main()
