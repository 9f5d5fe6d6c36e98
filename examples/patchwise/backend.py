"""Keras on PyTorch, in the way that models need which others load: float32, colours last."""

from __future__ import annotations

import os

os.environ["KERAS_BACKEND"] = "torch"
# Where a GPU multiplies matrices in the same order each time; read when its library is loaded.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import keras
import torch

keras.config.set_floatx("float32")
keras.config.set_image_data_format("channels_last")

__all__ = ["be_repeatable", "device", "keras", "torch"]


def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def be_repeatable(seed: int) -> None:
    """The same seed gives the same weights on the same machine."""
    keras.utils.set_random_seed(seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # guards what is not read here, for a third of the time
    torch.backends.cudnn.benchmark = False
