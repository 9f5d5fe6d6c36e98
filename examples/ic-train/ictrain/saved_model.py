"""TensorFlow's SavedModel, written by hand: the classifier as a graph whose weights are constants, with a signature.

https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/protobuf/meta_graph.proto
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ictrain.classifier import MIDDLE
from ictrain.images import SIDE, Array
from ictrain.protobuf import field, mapping

FLOAT, INT32 = 1, 3  # of TensorFlow's data types
KINDS = {"float32": FLOAT, "int32": INT32}
GRAPH_VERSION = 38  # what TensorFlow 1.14 writes; all the operations are older, and every later version reads it
ANY = -1  # how many pictures at once is not said
PICTURES = (ANY, SIDE, SIDE, 3)


def write(directory: Path, filters: Array, weights: Mapping[str, Array]) -> None:
    """In full under another name, then in place: a run that is killed leaves the last whole model.

    Nothing varies in the graph, so there is no `variables/` beside it; the loaders ask for none.
    """
    directory.mkdir(exist_ok=True)
    fresh = directory / f".saved_model.pb.{os.getpid()}"
    fresh.write_bytes(_saved_model(_graph(filters, weights), len(weights["bias"])))
    fresh.replace(directory / "saved_model.pb")


def _saved_model(graph: bytes, classes: int) -> bytes:
    signature = (
        mapping(1, {"images": _tensor_info("images:0", PICTURES)})
        + mapping(2, {"probabilities": _tensor_info("probabilities:0", (ANY, classes))})
        + field(3, "tensorflow/serving/predict")
    )
    meta_graph = field(1, field(4, "serve")) + field(2, graph) + mapping(5, {"serving_default": signature})
    return field(1, 1) + field(2, meta_graph)


def _tensor_info(name: str, shape: Sequence[int]) -> bytes:
    return field(1, name) + field(2, FLOAT) + field(3, _shape(shape))


def _graph(filters: Array, weights: Mapping[str, Array]) -> bytes:
    """What `classifier.extract` and `Classifier.predict` compute, step by step."""
    nodes = (
        _node("images", "Placeholder", dtype=field(6, FLOAT), shape=field(7, _shape(PICTURES))),
        _constant("shape", np.array([ANY, len(filters)], np.int32)),
        _node("flat", "Reshape", "images", "shape", T=field(6, FLOAT), Tshape=field(6, INT32)),
        _constant("middle", np.array(MIDDLE, np.float32)),
        _step("centred", "Sub", "flat", "middle"),
        _constant("filters", filters),
        _step("filtered", "MatMul", "centred", "filters"),
        _step("features", "Relu", "filtered"),
        _constant("kernel", weights["kernel"]),
        _step("weighted", "MatMul", "features", "kernel"),
        _constant("bias", weights["bias"]),
        _step("logits", "Add", "weighted", "bias"),
        _step("probabilities", "Softmax", "logits"),
    )
    return b"".join(field(1, node) for node in nodes) + field(4, field(1, GRAPH_VERSION))


def _step(name: str, operation: str, *inputs: str) -> bytes:
    return _node(name, operation, *inputs, T=field(6, FLOAT))


def _constant(name: str, values: NDArray[Any]) -> bytes:
    kind = KINDS[values.dtype.name]
    content = values.astype(values.dtype.newbyteorder("<")).tobytes()
    tensor = field(1, kind) + field(2, _shape(values.shape)) + field(4, content)
    return _node(name, "Const", dtype=field(6, kind), value=field(8, tensor))


def _node(name: str, operation: str, *inputs: str, **attributes: bytes) -> bytes:
    return field(1, name) + field(2, operation) + b"".join(field(3, node) for node in inputs) + mapping(5, attributes)


def _shape(sizes: Sequence[int]) -> bytes:
    return b"".join(field(2, field(1, size)) for size in sizes)
