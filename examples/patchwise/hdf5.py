"""Writes a model as HDF5 that Keras 2 and Keras 3 both load.

What Keras 3 writes itself Keras 2 does not understand: it says `batch_shape` and `Functional`, and describes types by
policies. All understand what Keras 2 wrote, so that is written here: the kinds of layers below, each with the keys that
every version from 2.0 on knows, and the weights under their names. There are no initializers, as the weights are there,
and no optimizer, whose state would make the file three times as big.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np

FORMAT = b"2.3.1"  # of Keras: whose file this is
BACKEND = b"tensorflow"  # its order of a kernel's axes, which is Keras 3's too

SLIDING = ("strides", "padding", "data_format")
KEYS = {
    "Conv2D": ("filters", "kernel_size", "dilation_rate", "activation", "use_bias", *SLIDING),
    "MaxPooling2D": ("pool_size", *SLIDING),
    "UpSampling2D": ("size", "data_format"),
    "Concatenate": ("axis",),
}


def write_model(model: Any, path: Path) -> None:
    """Whole or not at all."""
    beside = path.with_name(f".{path.name}.tmp")
    with h5py.File(beside, "w") as file:
        file.attrs["keras_version"] = FORMAT
        file.attrs["backend"] = BACKEND
        file.attrs["model_config"] = json.dumps(describe(model)).encode()
        _write_weights(model, file.create_group("model_weights"))
    os.replace(beside, path)


def _write_weights(model: Any, group: Any) -> None:
    group.attrs["keras_version"] = FORMAT
    group.attrs["backend"] = BACKEND
    group.attrs["layer_names"] = [layer.name.encode() for layer in model.layers]
    for layer in model.layers:
        names = [f"{layer.name}/{variable.name}:0".encode() for variable in layer.weights]
        inner = group.create_group(layer.name)
        inner.attrs["weight_names"] = names or np.zeros(0, "S1")
        for name, values in zip(names, layer.get_weights(), strict=True):
            inner.create_dataset(name, data=values)


def describe(model: Any) -> dict[str, Any]:
    """The model's configuration in the words of Keras 2."""
    first, last = model.layers[0], model.layers[-1]
    config = {
        "name": model.name,
        "layers": [_describe_layer(layer) for layer in model.layers],
        "input_layers": [[first.name, 0, 0]],
        "output_layers": [[last.name, 0, 0]],
    }
    return {"class_name": "Model", "config": config}


def _describe_layer(layer: Any) -> dict[str, Any]:
    kind, given = type(layer).__name__, layer.get_config()
    config = {"name": layer.name, "dtype": "float32"}
    if kind == "InputLayer":
        config |= {"batch_input_shape": list(layer.batch_shape), "sparse": False}
        return {"name": layer.name, "class_name": kind, "config": config, "inbound_nodes": []}
    config |= {"trainable": True, **{key: given[key] for key in KEYS[kind]}}
    return {"name": layer.name, "class_name": kind, "config": config, "inbound_nodes": [_inbound(layer)]}


def _inbound(layer: Any) -> list[Any]:
    given = layer.input if isinstance(layer.input, list) else [layer.input]
    return [[tensor._keras_history.operation.name, 0, 0, {}] for tensor in given]
