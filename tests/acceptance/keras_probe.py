"""Run by the interpreters that have some Keras: what it makes of models, and what their files consist of.

python keras_probe.py predict PATCHES.npy ANSWERS.npy MODEL…    all models in one process, as a classifier loads them
python keras_probe.py fields MODEL
"""

import json
import sys

import numpy


def predict(patches, answers, *paths):
    import keras

    models = [keras.models.load_model(path) for path in paths]
    given = numpy.load(patches)
    numpy.save(answers, numpy.stack([model.predict(given, verbose=0) for model in models]))
    shapes = [[model.input_shape, model.output_shape, model.count_params()] for model in models]
    print(json.dumps({"version": keras.__version__, "models": shapes}))


def fields(path):
    import h5py

    with h5py.File(path, "r") as file:
        weights = file["model_weights"]
        found = {
            "attributes": {name: file.attrs.get_id(name).get_type().get_cset() for name in file.attrs},
            "groups": sorted(file),
            "config": json.loads(file.attrs["model_config"]),
            "versions": [text(group.attrs[name]) for group in (file, weights) for name in ("keras_version", "backend")],
            "layer_names": [text(name) for name in weights.attrs["layer_names"]],
            "weights": {layer: described(weights[layer]) for layer in weights},
        }
    print(json.dumps(found))


def described(group):
    names = [text(name) for name in group.attrs["weight_names"]]
    return {name: [str(group[name].dtype), list(group[name].shape)] for name in names}


def text(value):
    return value.decode() if isinstance(value, bytes) else value


if __name__ == "__main__":
    {"predict": predict, "fields": fields}[sys.argv[1]](*sys.argv[2:])
