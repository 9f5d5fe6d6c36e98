"""The models of examples/patchwise: the network that users know, in files that old and new Keras read alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.labs.components import KERAS2_PYTHON, TRAINER_PYTHON
from tests.labs.trainer import Training, draw_page, run, start

pytestmark = [pytest.mark.long, pytest.mark.component("trainer")]

PROBE = Path(__file__).with_name("keras_probe.py")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Training:
    place = tmp_path_factory.mktemp("models")
    return start(place / "output", draw_page(place / "page"), "--samples", 24, "--epochs", 2).end()


def predict(trained: Training, place: Path, interpreter: Path, **env: str) -> tuple[dict[str, Any], Any]:
    """What a Keras says of the models, and what they say of some patches."""
    patches, answers = place / "patches.npy", place / f"answers{len(env)}.npy"
    np.save(patches, np.random.default_rng(0).random((3, 32, 32, 3)).astype("float32"))
    models = sorted(trained.output.glob("*.hdf5"))
    said = run(PROBE, "predict", patches, answers, *models, interpreter=interpreter, **env)
    return json.loads(said.splitlines()[-1]), np.load(answers)


@pytest.mark.component("keras 2")
def test_keras_2_and_keras_3_answer_alike(trained: Training, tmp_path: Path) -> None:
    trained.result()
    new, wanted = predict(trained, tmp_path, TRAINER_PYTHON, KERAS_BACKEND="torch")
    old, found = predict(trained, tmp_path, KERAS2_PYTHON)
    assert (new["version"][0], old["version"]) == ("3", "2.3.1")
    assert new["models"] == old["models"]
    assert [shapes[:2] for shapes in old["models"]] == [[[None, 32, 32, 3], [None, 32, 32, 1]]] * 4
    assert wanted.std() > 1e-3, "the models say something"
    assert np.abs(found - wanted).max() < 1e-5


def test_the_file_has_what_keras_2_knows_and_nothing_else(trained: Training) -> None:
    trained.result()
    found = json.loads(run(PROBE, "fields", trained.output / "Model 0.hdf5"))
    assert found["groups"] == ["model_weights"], "and no optimizer_weights"
    # The character set is ASCII: Keras 2 gets bytes then, and decodes them. UTF-8 would be str there, and fail.
    assert found["attributes"] == dict.fromkeys(["backend", "keras_version", "model_config"], 0)
    assert found["versions"] == ["2.3.1", "tensorflow"] * 2
    assert found["config"]["class_name"] == "Model"
    model = found["config"]["config"]
    assert set(model) == {"name", "layers", "input_layers", "output_layers"}
    assert model["input_layers"] == [[model["layers"][0]["name"], 0, 0]]
    assert model["output_layers"] == [[model["layers"][-1]["name"], 0, 0]]
    assert found["layer_names"] == [layer["name"] for layer in model["layers"]]
    for layer in model["layers"]:
        check_layer(layer, found["weights"][layer["name"]])


EVERY = {"name", "dtype", "trainable"}
KEYS = {
    "InputLayer": {"name", "dtype", "batch_input_shape", "sparse"},
    "Conv2D": EVERY
    | {"filters", "kernel_size", "strides", "padding", "data_format", "dilation_rate", "activation", "use_bias"},
    "MaxPooling2D": EVERY | {"pool_size", "strides", "padding", "data_format"},
    "UpSampling2D": EVERY | {"size", "data_format"},
    "Concatenate": EVERY | {"axis"},
}


def check_layer(layer: dict[str, Any], weights: dict[str, Any]) -> None:
    name, kind, config = layer["name"], layer["class_name"], layer["config"]
    assert set(layer) == {"name", "class_name", "config", "inbound_nodes"}
    assert set(config) == KEYS[kind]
    assert (config["name"], config["dtype"]) == (name, "float32")
    if kind == "InputLayer":
        assert (config["batch_input_shape"], layer["inbound_nodes"]) == ([None, 32, 32, 3], [])
        return
    for node in layer["inbound_nodes"]:
        assert all(inbound[1:] == [0, 0, {}] and isinstance(inbound[0], str) for inbound in node)
    if kind == "Conv2D":
        (kernel, of_kernel), (bias, of_bias) = weights.items()
        assert (kernel, bias) == (f"{name}/kernel:0", f"{name}/bias:0")
        assert of_bias == ["float32", [config["filters"]]]
        assert of_kernel[0] == "float32"
        assert [*of_kernel[1][:2], of_kernel[1][3]] == [*config["kernel_size"], config["filters"]]
    else:
        assert weights == {}


def test_the_network_has_the_size_that_users_know() -> None:
    said = run("-c", "import network; print(network.build(64, 64, 32).count_params())")
    assert int(said.splitlines()[-1]) == 1429733


def test_a_network_that_cannot_learn_is_recognized() -> None:
    said = run(
        "-c",
        "import network, numpy\n"
        "patches = numpy.random.default_rng(0).integers(0, 255, (4, 32, 32, 3)).astype('uint8')\n"
        "model = network.build(32, 32, 4)\n"
        "narrow = model.layers[-2]\n"
        "for sign in (1, -1):\n"
        "    narrow.set_weights([sign * abs(values) for values in narrow.get_weights()])\n"
        "    print(network.is_alive(model, patches))\n",
    )
    assert said.split()[-2:] == ["True", "False"]
