"""CSV files as loggers write them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.labs import components
from tests.unit.runner.metrics.desk import Desk

# As Lightning's CSVLogger writes it: what is logged per step and what per epoch has rows of its own.
LIGHTNING = """epoch,step,train_loss,val_acc,val_loss
0,49,0.9,,
0,63,,0.5,0.8
1,99,0.6,,
"""

KERAS = """epoch,accuracy,loss,val_accuracy,val_loss
0,0.25,1.5,0.5,1.25
1,0.5,1.0,NA,nan
"""


def write(desk: Desk, text: str, name: str = "metrics.csv") -> Path:
    path = desk.outputs / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_logger_of_lightning(desk: Desk) -> None:
    write(desk, LIGHTNING, "lightning_logs/version_0/metrics.csv")
    desk.finish()
    assert [(line["step"], line["m"]) for line in desk.lines()] == [
        (49, {"epoch": 0.0, "train_loss": 0.9}),
        (63, {"epoch": 0.0, "val_acc": 0.5, "val_loss": 0.8}),
        (99, {"epoch": 1.0, "train_loss": 0.6}),
    ]


@pytest.mark.parametrize("name", ["training.log", "history.csv", "results.csv"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_logger_of_keras(desk: Desk, name: str, separator: str) -> None:
    write(desk, KERAS.replace(",", separator), name)
    desk.finish()
    assert desk.curve("loss") == [(0, 1.5), (1, 1.0)]
    assert desk.curve("val_accuracy") == [(0, 0.5)]
    assert str(desk.curve("val_loss")) == "[(0, 1.25), (1, nan)]"
    assert not desk.curve("epoch")


REAL_KERAS = """
import sys, types
from keras.callbacks import CSVLogger
for append in (False, True):
    logger = CSVLogger(sys.argv[1], append=append)
    logger.set_model(types.SimpleNamespace(stop_training=False))
    logger.on_train_begin()
    for epoch in range(2):
        logger.on_epoch_end(epoch + 2 * append, {"loss": 0.5 ** (epoch + 1), "val_loss": 0.25})
    logger.on_train_end()
"""


@pytest.mark.component("trainer")
def test_the_real_logger_of_keras(desk: Desk) -> None:
    command = [components.TRAINER_PYTHON, "-c", REAL_KERAS, str(desk.outputs / "log.csv")]
    subprocess.run(command, check=True, timeout=300, env={"KERAS_BACKEND": "torch"})
    desk.finish()
    assert desk.curve("loss") == [(0, 0.5), (1, 0.25), (2, 0.5), (3, 0.25)]


def test_rows_that_are_appended(desk: Desk) -> None:
    path = write(desk, "step,loss\n")
    desk.look()
    for step in range(3):
        with path.open("a") as file:
            file.write(f"{step},{step / 2}")
            file.flush()
            desk.look()
            file.write("\n")
        desk.look()
        assert desk.curve("loss")[-1] == (step, step / 2)
    assert len(desk.lines()) == 3


def test_a_table_that_is_written_anew_with_more_columns(desk: Desk) -> None:
    """Lightning does so when a metric is logged for the first time later than others."""
    path = write(desk, "epoch,step,train_loss\n0,49,0.9\n0,99,0.8\n")
    desk.look()
    path.write_text("epoch,step,train_loss,val_loss\n0,49,0.9,\n")  # as it may be met half way
    desk.look()
    path.write_text("epoch,step,train_loss,val_loss\n0,49,0.9,\n0,99,0.8,\n0,99,,0.7\n")
    desk.look()
    desk.finish()
    assert desk.curve("train_loss") == [(49, 0.9), (99, 0.8)]
    assert desk.curve("val_loss") == [(99, 0.7)]


def test_a_table_that_holds_another_training(desk: Desk) -> None:
    path = write(desk, "step,loss\n1,0.9\n2,0.8\n")
    desk.look()
    path.write_text("step,loss\n1,0.5\n")
    desk.look()
    assert desk.curve("loss") == [(1, 0.9), (2, 0.8), (1, 0.5)]


def test_a_header_in_the_middle(desk: Desk) -> None:
    write(desk, "epoch,loss\n0,0.5\nepoch,loss,acc\n1,0.25,0.75\n")
    desk.finish()
    assert desk.points() == [("loss", 0, 0.5), ("loss", 1, 0.25), ("acc", 1, 0.75)]


@pytest.mark.parametrize(("is_whole", "expected"), [(True, [(1, 0.25), (2, 0.5)]), (False, [(1, 0.25)])])
def test_the_last_line_of_a_run_that_was_killed_may_be_cut(
    desk: Desk, is_whole: bool, expected: list[tuple[int, float]]
) -> None:
    write(desk, "step,loss\n1,0.25\n2,0.5")
    desk.look()
    desk.finish(is_whole=is_whole)
    assert desk.curve("loss") == expected


@pytest.mark.parametrize(
    "text",
    [
        "id,score\n1,0.5\n2,0.25\n",  # predictions
        "1,0.5\n2,0.25\n",
        "\n\n",
        "",
        "a note\nwith two lines\n",
        "step\n1\n",
        "x" * (2 << 20),
        "step," + "x" * (2 << 20) + "\n1,2\n",
    ],
)
def test_what_is_no_table_of_metrics(desk: Desk, text: str) -> None:
    write(desk, text, "data.csv")
    desk.look()
    desk.finish()
    assert not desk.lines()


def test_odd_cells(desk: Desk) -> None:
    text = '\ufeffStep,"a, b",ünï,text,,wall_time\n1,2,3,x,5,1763181001.5\n,,,,,\n2,1e400,-inf,,\n3,"4\n4,5\n'
    write(desk, text)
    desk.finish()
    assert [(line["step"], line["m"]) for line in desk.lines()][:2] == [
        (1, {"a, b": 2.0, "ünï": 3.0}),
        (2, {"a, b": float("inf"), "ünï": float("-inf")}),
    ]
    assert desk.lines()[0]["t"] == 1763181001.5
    assert desk.curve("a, b")[-1] == (4, 5.0)


def test_a_step_is_not_asked_of_a_file_that_is_called_metrics(desk: Desk) -> None:
    write(desk, "loss\n0.5\n0.25\n")
    desk.finish()
    assert desk.points() == [("loss", None, 0.5), ("loss", None, 0.25)]


def test_very_many_columns(desk: Desk) -> None:
    names = [f"m{number}" for number in range(100_000)]
    write(desk, "step," + ",".join(names) + "\n1" + ",1" * len(names) + "\n")
    desk.finish()
    assert len({name for name, _, _ in desk.points()}) == 20_000
