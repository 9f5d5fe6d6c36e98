"""What examples/ic-train leaves in best_model/: TensorFlow loads it, and it is the model that was trained."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef
from tensorboard.util import tensor_util

from tests.labs.components import KERAS2_PYTHON
from tests.labs.trainer import run

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "ic-train"
PROBE = Path(__file__).with_name("saved_model_probe.py")
SEEDS = {"seed_split_test": 1, "seed_split_val": 2, "seed_shuffle": 3}


@pytest.fixture(autouse=True)
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example can be imported; other tests have it as a process."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "ictrain"]:
        del sys.modules[name]


class Trained:
    """A model after its training, and the directory of its run."""

    def __init__(self, runs: Path, model: dict[str, Any], stopping: dict[str, Any]) -> None:
        from ictrain import classifier, images, record, training

        config = json.loads((EXAMPLE / "run.json").read_text())
        config["model"].update(model)
        config["callbacks"]["early_stopping"].update(stopping, start_from_epoch=0)
        kept = record.Record(record.RunsConfig(runs), config)
        self.base, self.best = config["model"]["base"], kept.directory / "best_model"
        self.data = images.load(config["dataset"], SEEDS)
        self.model = classifier.build(config["model"], len(self.data.names), seed=1)
        self.epochs = training.fit(kept, self.model, self.data)

    def predict(self, pictures: Any) -> Any:
        from ictrain import classifier

        return self.model.predict(classifier.extract(self.base, pictures))


@pytest.mark.component("keras 2")
def test_tensorflow_loads_it_both_ways_and_answers_as_the_example_does(tmp_path: Path) -> None:
    trained = Trained(tmp_path / "runs", {}, {"monitor": "val_loss", "restore_best_weights": True})
    test, pictures, answers = trained.data.test, tmp_path / "pictures.npy", tmp_path / "answers.npy"
    np.save(pictures, test.images)
    said = json.loads(run("-W", "ignore", PROBE, trained.best, pictures, answers, interpreter=KERAS2_PYTHON))
    assert said == {"version": "1.14.0", "method": "tensorflow/serving/predict"}
    found, wanted = np.load(answers), trained.predict(test.images)
    assert found.shape == (2, len(test.images), 5)
    assert np.abs(found - wanted).max() < 1e-5
    assert (found[0].argmax(axis=1) == test.labels).mean() > 0.7, "five classes: chance is 0.2"


def test_it_is_the_one_of_the_lowest_val_loss_whatever_stops_early(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A large step overfits: the loss on what is learned goes down to the end, the one on what is not rises again."""
    from ictrain import classifier

    trained = Trained(
        tmp_path / "runs", {"learning_rate": 0.3, "classifier": {"dropout": 0.0}}, {"monitor": "loss", "patience": 20}
    )
    losses = [float(loss) for loss in re.findall(r"val_loss (\S+)", capsys.readouterr().out)]
    assert len(losses) == trained.epochs == 20
    assert losses[-1] > min(losses) + 0.01
    values = constants(trained.best)
    trained.model.weights = {name: values[name] for name in ("kernel", "bias")}
    validation = trained.data.validation
    seen = classifier.extract(trained.base, validation.images)
    assert classifier.measure(trained.model, seen, validation)["loss"] == pytest.approx(min(losses), abs=1e-4)
    assert (values["filters"] == classifier.filters(trained.base)).all()


def constants(model: Path) -> dict[str, Any]:
    """Of the one graph of a SavedModel; in front of it are its field and length, and the version of the format."""
    assert [path.name for path in model.iterdir()] == ["saved_model.pb"]
    data = (model / "saved_model.pb").read_bytes()
    assert data.startswith(b"\x08\x01\x12")
    begin = next(place for place in range(3, len(data)) if data[place] < 0x80) + 1
    graph = MetaGraphDef.FromString(data[begin:]).graph_def
    return {node.name: tensor_util.make_ndarray(node.attr["value"].tensor) for node in graph.node if node.op == "Const"}


@pytest.mark.parametrize(
    ("patience", "start", "end"), [(2, 0, 5), (0, 0, 4), (1, 0, 4), (2, 4, None), (1, 4, 6), (9, 0, None)]
)
def test_training_stops_where_keras_stops_it(patience: int, start: int, end: int | None) -> None:
    from ictrain import classifier, training

    model = classifier.Classifier(2, 0.0, 0.0, 0.0, seed=1)
    stopping = training.Stopping({"monitor": "val_loss", "patience": patience, "start_from_epoch": start})
    losses = [5.0, 4.0, 3.0, 3.5, 3.2, 3.3]
    over = (epoch for epoch, loss in enumerate(losses, 1) if stopping.is_over(epoch, {"val_loss": loss}, model))
    assert next(over, None) == end
