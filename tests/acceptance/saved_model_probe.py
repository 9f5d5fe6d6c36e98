"""Run by the interpreter that has TensorFlow: what both of its loaders make of a SavedModel.

python saved_model_probe.py MODEL IMAGES.npy ANSWERS.npy
"""

import json
import sys

import numpy
import tensorflow as tf


def load_as_1(model, images):
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        meta_graph = tf.compat.v1.saved_model.loader.load(session, ["serve"], model)
        signature = meta_graph.signature_def["serving_default"]
        print(json.dumps({"version": tf.__version__, "method": signature.method_name}))
        return session.run(signature.outputs["probabilities"].name, {signature.inputs["images"].name: images})


def load_as_2(model, images):
    loaded = tf.compat.v2.saved_model.load(model)
    return loaded.signatures["serving_default"](tf.constant(images))["probabilities"].numpy()


def main(model, images, answers):
    tf.compat.v1.enable_eager_execution()
    given = numpy.load(images)
    numpy.save(answers, numpy.stack([load(model, given) for load in (load_as_1, load_as_2)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
