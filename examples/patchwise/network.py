"""The network of one layer: it goes down two levels, comes up again, and tells for each pixel whether it belongs."""

from __future__ import annotations

from typing import Any

import numpy as np
from backend import device, keras, torch
from page import Array

layers = keras.layers


def build(height: int, width: int, filters: int) -> Any:
    """Like a U-Net: what each level saw on the way down is put beside what comes up to it."""
    keras.utils.clear_session()  # layers are named anew from 1: a resumed training writes the same file
    patch = keras.Input((height, width, 3))
    high = _convolve(patch, filters)
    middle = _convolve(layers.MaxPooling2D()(high), filters * 2)
    low = _convolve(layers.MaxPooling2D()(middle), filters * 8)
    middle = _convolve(layers.Concatenate()([_up(low, filters * 4), middle]), filters * 4)
    high = _convolve(layers.Concatenate()([_up(middle, filters * 2), high]), filters * 2)
    narrow = _convolution(high, 2, 3)
    return keras.Model(patch, layers.Conv2D(1, 1, activation="sigmoid")(narrow))


def _convolve(x: Any, filters: int) -> Any:
    return _convolution(_convolution(x, filters, 3), filters, 3)


def _up(x: Any, filters: int) -> Any:
    return _convolution(layers.UpSampling2D()(x), filters, 2)


def _convolution(x: Any, filters: int, side: int) -> Any:
    return layers.Conv2D(filters, side, activation="relu", padding="same", kernel_initializer="he_normal")(x)


def tensors(colours: Array) -> Any:
    """As all models of this kind expect it: blue first, and dark is high. Sent as bytes, a quarter of floats."""
    sent = torch.from_numpy(np.ascontiguousarray(colours[..., ::-1])).to(device())
    return (255 - sent.float()) / 255


def is_alive(model: Any, colours: Array) -> bool:
    """Whether a new network answers at all.

    Its last but one level has two units. Where both begin below zero the answer is 0.5 whatever comes in, and no
    gradient ever changes that.
    """
    with torch.no_grad():
        answers = model(tensors(colours), training=False)
    return bool((answers != 0.5).float().mean() > 0.5)
