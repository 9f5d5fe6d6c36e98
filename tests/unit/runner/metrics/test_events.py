"""Event files as their writers write them."""

from __future__ import annotations

import contextlib
import math
import os
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tensorboardX
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
from tensorboard.util import tensor_util

from tests.labs import components
from tests.unit.runner.metrics.desk import Desk

NAME = "events.out.tfevents.1763181001.node"


class Writer:
    """Records one by one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab")

    def add(self, step: int, *values: Summary.Value, at: float = 1763181001.25) -> None:
        self.add_bytes(Event(wall_time=at, step=step, summary=Summary(value=values)).SerializeToString())

    def add_bytes(self, data: bytes) -> None:
        """The check of what is large takes seconds, and nobody reads it."""
        length = struct.pack("<Q", len(data))
        check = masked_crc32c(data) if len(data) < 1 << 14 else 0
        self._file.write(length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", check))
        self._file.flush()

    def close(self) -> None:
        self._file.close()


@pytest.fixture
def writer(desk: Desk) -> Iterator[Writer]:
    with contextlib.closing(Writer(desk.outputs / NAME)) as writer:
        yield writer


def simple(name: str, value: float) -> Summary.Value:
    return Summary.Value(tag=name, simple_value=value)


def tensor(name: str, value: TensorProto) -> Summary.Value:
    return Summary.Value(tag=name, tensor=value)


def test_the_writer_of_tensorboardx(desk: Desk) -> None:
    with tensorboardX.SummaryWriter(str(desk.outputs / "runs" / "Nov15_12-30-00_node")) as writer:
        for step in range(3):
            writer.add_scalar("loss/train", 0.5 ** (step + 1), step)
        writer.add_histogram("weights", np.arange(10.0), 1)
        writer.add_text("note", "hello", 1)
        writer.add_image("picture", np.zeros((3, 8, 8)), 1)
    desk.finish()
    assert desk.points() == [("loss/train", 0, 0.5), ("loss/train", 1, 0.25), ("loss/train", 2, 0.125)]


def test_parts_that_are_written_to_folders_of_their_own(desk: Desk) -> None:
    with tensorboardX.SummaryWriter(str(desk.outputs)) as writer:
        writer.add_scalars("loss", {"train": 0.5, "valid": 0.75}, 1)
    desk.finish()
    assert sorted(desk.points()) == [("loss/train/loss", 1, 0.5), ("loss/valid/loss", 1, 0.75)]


TORCH = """
import sys
from torch.utils.tensorboard import SummaryWriter
with SummaryWriter(sys.argv[1]) as writer:
    for step in range(3):
        writer.add_scalar("loss", 0.5 ** (step + 1), step)
        writer.add_scalar("exact", 0.5 ** (step + 1), step, new_style=True, double_precision=True)
"""


@pytest.mark.component("torch writer")
def test_the_writer_of_pytorch(desk: Desk) -> None:
    subprocess.run([components.TRAINER_PYTHON, "-c", TORCH, str(desk.outputs)], check=True, timeout=300)
    desk.finish()
    assert desk.curve("loss") == desk.curve("exact") == [(0, 0.5), (1, 0.25), (2, 0.125)]


TENSORFLOW_1 = """
import sys
import tensorflow as tf
value = tf.placeholder(tf.float32)
tf.summary.scalar("error", value)
tf.summary.histogram("weights", [1.0, 2.0])
tf.summary.image("picture", tf.zeros([1, 4, 4, 3]))
merged = tf.summary.merge_all()
with tf.Session() as session:
    writer = tf.summary.FileWriter(sys.argv[1] + "/2017-02-10_12-30-00/train-summaries", session.graph)
    for step in range(3):
        writer.add_summary(session.run(merged, {value: 0.5 ** (step + 1)}), step * 1000)
    writer.close()
"""

TENSORFLOW_2 = """
import sys
import tensorflow as tf
tf.compat.v1.enable_eager_execution()
with tf.compat.v2.summary.create_file_writer(sys.argv[1] + "/logs/validation").as_default():
    for step in range(3):
        tf.compat.v2.summary.scalar("epoch_loss", 0.5 ** (step + 1), step=step)
    tf.compat.v2.summary.histogram("weights", [1.0, 2.0, 3.0], step=1)
"""


@pytest.mark.component("keras 2")
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (TENSORFLOW_1, [("train/error", 0, 0.5), ("train/error", 1000, 0.25), ("train/error", 2000, 0.125)]),
        (TENSORFLOW_2, [("validation/epoch_loss", step, 0.5 ** (step + 1)) for step in range(3)]),
    ],
    ids=["1", "2"],
)
def test_the_writers_of_tensorflow(desk: Desk, program: str, expected: list[tuple[str, int, float]]) -> None:
    command = [components.KERAS2_PYTHON, "-W", "ignore", "-c", program, str(desk.outputs)]
    subprocess.run(command, check=True, timeout=300, capture_output=True)
    desk.finish()
    assert desk.points() == expected


@pytest.mark.parametrize(
    "kind", ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "bool"]
)
def test_tensors_of_every_type(desk: Desk, writer: Writer, kind: str) -> None:
    """Listed, as TensorFlow's Python writes a single number, and packed, as its C++ does."""
    value = np.array(1, kind) if kind in ("bool", "uint8", "uint16") else np.array(-3, kind)
    listed = tensor_util.make_tensor_proto(value)
    packed = TensorProto(dtype=listed.dtype, tensor_shape=listed.tensor_shape, tensor_content=value.tobytes())
    writer.add(1, tensor("listed", listed), tensor("packed", packed))
    desk.finish()
    assert desk.points() == [("listed", 1, float(value)), ("packed", 1, float(value))]


def test_tensors_of_more_than_a_number_are_passed_over(desk: Desk, writer: Writer) -> None:
    values = [np.array([1.0, 2.0]), np.array([[1.0]]), np.array(["text"]), np.array("text")]
    writer.add(1, *(tensor(f"t{i}", tensor_util.make_tensor_proto(value)) for i, value in enumerate(values)))
    writer.add(2, simple("loss", 0.5))
    desk.finish()
    assert desk.points() == [("loss", 2, 0.5)]


def test_numbers_that_are_none(desk: Desk, writer: Writer) -> None:
    writer.add(1, simple("a", math.nan), simple("b", math.inf), simple("c", -math.inf))
    desk.finish()
    assert str(desk.points()) == "[('a', 1, nan), ('b', 1, inf), ('c', 1, -inf)]"


def test_steps_may_be_negative_or_missing(desk: Desk, writer: Writer) -> None:
    writer.add(-5, simple("a", 1.0))
    writer.add_bytes(Event(wall_time=1763181001.0, summary=Summary(value=[simple("b", 2.0)])).SerializeToString())
    desk.finish()
    assert desk.points() == [("a", -5, 1.0), ("b", 0, 2.0)]


def test_values_of_one_step_share_a_line(desk: Desk, writer: Writer) -> None:
    for step in (1, 2):
        writer.add(step, simple("a", 1.0), at=1763181001.5)
        writer.add(step, simple("b", 2.0), at=1763181001.6)
    writer.add(2, simple("b", 3.0), at=1763181001.7)
    desk.finish()
    assert [(line["t"], line["step"], line["m"]) for line in desk.lines()] == [
        (1763181001.5, 1, {"a": 1.0, "b": 2.0}),
        (1763181001.5, 2, {"a": 1.0, "b": 2.0}),
        (1763181001.7, 2, {"b": 3.0}),
    ]
    assert {line["src"] for line in desk.lines()} == {NAME}


def test_a_record_is_read_when_it_is_whole(desk: Desk, tmp_path: Path) -> None:
    """Byte by byte."""
    whole = Writer(tmp_path / "whole")
    for step in range(3):
        whole.add(step, simple("loss", step / 2))
    whole.close()
    data = whole.path.read_bytes()
    with (desk.outputs / NAME).open("ab", buffering=0) as file:
        for byte in data:
            file.write(bytes([byte]))
            desk.look()
    desk.finish()
    assert desk.points() == [("loss", 0, 0.0), ("loss", 1, 0.5), ("loss", 2, 1.0)]


def test_a_file_that_grows_is_read_on(desk: Desk, writer: Writer) -> None:
    for step in range(3):
        writer.add(step, simple("loss", step))
        desk.look()
        desk.look()
        assert len(desk.points()) == step + 1


def test_a_file_that_breaks_off_is_read_to_there(desk: Desk, writer: Writer) -> None:
    writer.add(1, simple("loss", 0.5))
    writer.add(2, simple("loss", 0.25))
    os.truncate(writer.path, writer.path.stat().st_size - 5)
    desk.look()
    desk.finish()
    assert desk.points() == [("loss", 1, 0.5)]


def test_what_is_no_event_is_passed_over(desk: Desk, writer: Writer) -> None:
    for junk in (b"", b"\xff" * 40, b"\x2a\x7f", b"\x0b\x0c", os.urandom(300)):
        writer.add_bytes(junk)
    writer.add(2, simple("loss", 0.25))
    desk.finish()
    assert ("loss", 2, 0.25) in desk.points()


def test_damage_ends_the_file(desk: Desk, writer: Writer) -> None:
    writer.add(1, simple("loss", 0.5))
    with writer.path.open("ab") as file:
        file.write(struct.pack("<QI", 1 << 60, 0) + bytes(100))
    writer.add(2, simple("loss", 0.25))
    desk.look()
    desk.finish()
    assert desk.points() == [("loss", 1, 0.5)]


@pytest.mark.parametrize("size", [3 << 20, 20 << 20])
def test_large_records(desk: Desk, writer: Writer, size: int) -> None:
    """A picture beside a scalar is read; what is larger than any picture is passed over."""
    picture = Summary.Value(tag="picture", image=Summary.Image(encoded_image_string=bytes(size)))
    writer.add(1, picture, simple("loss", 0.5))
    writer.add(2, simple("loss", 0.25))
    desk.finish()
    assert desk.curve("loss") == [(1, 0.5), (2, 0.25)][size > 16 << 20 :]


def test_work_is_done_piece_by_piece(desk: Desk, writer: Writer) -> None:
    filler = Summary.Value(tag="note", metadata={"display_name": "x" * 1000})
    for step in range(3000):
        writer.add(step, simple("loss", step), filler)
    assert desk.look(seconds=-1)
    assert not desk.points()
    assert not desk.look()
    assert desk.curve("loss") == [(step, step) for step in range(3000)]


def many_names(writer: Writer, count: int) -> None:
    for first in range(0, count, 1000):
        writer.add(first, *(simple(f"metric {number}", number) for number in range(first, first + 1000)))


@pytest.fixture
def a_million_names(writer: Writer) -> Iterator[None]:
    many_names(writer, 1_000_000)
    yield
    writer.path.unlink()


@pytest.mark.long
@pytest.mark.usefixtures("a_million_names")
def test_a_million_names_are_not_kept(desk: Desk) -> None:
    desk.finish()
    names = {name for name, _, _ in desk.points()}
    assert len(names) == 20_000
    assert max(len(line.get("m", {})) for line in desk.lines()) <= 500
