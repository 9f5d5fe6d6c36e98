"""A page and its layers, read from images. One page is held as bytes, and one layer at a time; patches never are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps
from request import IMAGE, REGIONS, BadInput, Layer

Array = np.ndarray[Any, np.dtype[Any]]

OPAQUE = 255


class Page:
    def __init__(self, inputs: Path, layers: list[Layer]) -> None:
        self._inputs = inputs
        self.size = _size(inputs / IMAGE)
        for file in (REGIONS, *(layer.file for layer in layers)):
            if (size := _size(inputs / file)) != self.size:
                raise BadInput(f"{file} is {_sides(size)} pixels, and {IMAGE} is {_sides(self.size)}")
        self.colours = read_colours(inputs / IMAGE)
        self._regions = read_mask(inputs / REGIONS)

    def mask(self, layer: Layer) -> Array:
        """Where the layer is. The background is taken as it is, the others within the selected regions."""
        mask = read_mask(self._inputs / layer.file)
        return mask if layer.name == "background" else mask & self._regions


def read_colours(path: Path) -> Array:
    """Rows, columns and the three colours, turned the way the camera says."""
    with _opened(path) as image:
        if image.mode.startswith(("I", "F")):
            raise BadInput(f"{path.name} has {image.mode} pixels; save it with 8 bits for each colour")
        return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))


def read_mask(path: Path) -> Array:
    """Where the image is opaque."""
    with _opened(path) as image:
        if not image.has_transparency_data:
            raise BadInput(f"{path.name} has no transparency, and so marks no pixels: save it as RGBA")
        mask: Array = np.asarray(image.convert("RGBA").getchannel("A")) == OPAQUE
    return mask


def _size(path: Path) -> tuple[int, int]:
    with _opened(path) as image:
        turned = image.getexif().get(0x0112, 1) >= 5  # orientations from 5 on lie on their side
        return (image.height, image.width) if turned else (image.width, image.height)


def _sides(size: tuple[int, int]) -> str:
    return f"{size[0]} × {size[1]}"


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    try:
        with Image.open(path) as image:
            yield image
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise BadInput(f"{path.name} cannot be read as an image: {str(error).splitlines()[0]}") from None
