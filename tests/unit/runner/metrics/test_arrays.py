"""`.npz` files, by numpy itself."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import pytest

from tests.unit.runner.metrics.desk import Desk


def save(desk: Desk, name: str = "run.npz", **arrays: Any) -> None:
    np.savez_compressed(desk.outputs / name, **arrays)


def test_arrays_of_one_length_are_curves(desk: Desk) -> None:
    save(desk, train_error=np.array([0.5, 0.25]), valid_error=np.array([0.75, 0.5]))
    desk.look()
    assert not desk.lines(), "it may not be complete yet"
    desk.finish()
    assert [(line["step"], line["m"]) for line in desk.lines()] == [
        (0, {"train_error": 0.5, "valid_error": 0.75}),
        (1, {"train_error": 0.25, "valid_error": 0.5}),
    ]
    assert desk.lines()[0]["t"] == pytest.approx((desk.outputs / "run.npz").stat().st_mtime, abs=0.001)


def test_a_step_of_their_own(desk: Desk) -> None:
    save(desk, epoch=[10, 20], loss=[0.5, 0.25])
    desk.finish()
    assert desk.points() == [("loss", 10, 0.5), ("loss", 20, 0.25)]


def test_single_numbers_are_a_summary(desk: Desk) -> None:
    save(desk, best=np.float32(0.5), epochs=3)
    desk.finish()
    assert [line["summary"] for line in desk.lines()] == [{"best": 0.5, "epochs": 3}]


@pytest.mark.parametrize("kind", ["<f2", "<f4", ">f4", "<f8", ">f8", "i1", "<i2", ">i4", "<i8", "u1", "<u4", "?"])
def test_every_type(desk: Desk, kind: str) -> None:
    save(desk, x=np.array([0, 1, 1], kind))
    desk.finish()
    assert desk.curve("x") == [(0, 0), (1, 1), (2, 1)]


def test_numbers_that_are_none(desk: Desk) -> None:
    save(desk, x=[np.nan, np.inf])
    desk.finish()
    assert str(desk.curve("x")) == "[(0, nan), (1, inf)]"


def archive(**members: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)
    return held.getvalue()


def npy(header: str, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


GOOD = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", bytes(8))


def test_the_form_that_the_damaged_ones_are_made_from(desk: Desk) -> None:
    (desk.outputs / "run.npz").write_bytes(archive(x=GOOD))
    desk.finish()
    assert desk.points() == [("x", 0, 0.0)]


@pytest.mark.parametrize(
    "arrays",
    [
        {"weights": np.zeros((3, 2)), "bias": np.zeros(2)},
        {"a": np.zeros(2), "b": np.zeros(3)},
        {"names": np.array(["a", "b"])},
        {"things": np.array([{}, None], object)},
        {"z": np.zeros(2, complex)},
        {"record": np.zeros(2, [("a", "f4"), ("b", "f4")])},
        {"long": np.zeros(100_001)},
        {f"a{number}": np.zeros(1) for number in range(201)},
    ],
    ids=lambda arrays: ",".join(list(arrays)[:2]),
)
def test_what_is_no_file_of_metrics(desk: Desk, arrays: dict[str, Any]) -> None:
    save(desk, **arrays)
    desk.finish()
    assert not desk.lines()


@pytest.mark.parametrize(
    "data",
    [
        b"", b"PK", b"x" * 1000,
        archive(x=GOOD)[:-30],
        archive(x=GOOD[:-4]),
        archive(x=b"\x93NUMPY"),
        archive(x=npy("{'descr': '<f8', 'fortran_order': False, 'shape': (999999999,), }", bytes(8))),
        archive(x=npy("{'descr': __import__('os').system('touch /tmp/x'), 'shape': (1,), }", bytes(8))),
        archive(x=b"\x93NUMPY\x02\x00\xff\xff\xff\x7f"),
        archive(x=GOOD).replace(b"PK\x01\x02", b"PK\x01\x03"),
        archive(x=GOOD.replace(b"<f8", b"<f9")),
    ],
    ids=lambda data: f"{len(data)} bytes",  # an archive has the time in it
)  # fmt: skip
def test_damaged_files(desk: Desk, data: bytes) -> None:
    (desk.outputs / "run.npz").write_bytes(data)
    desk.finish()
    assert not desk.lines()
