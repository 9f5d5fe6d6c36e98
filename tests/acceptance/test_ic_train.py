"""The example that trains on generated pictures leaves what a run of the Training Runs stack left, whole."""

from __future__ import annotations

import csv
import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.labs.components import TRAINER_PYTHON

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "ic-train"
CONFIG: dict[str, Any] = json.loads((EXAMPLE / "run.json").read_text())
SCORES = {
    "AUC", "categorical_crossentropy", "precision", "recall", "accuracy", "accuracy_top3", "accuracy_top10", "F1",
}  # fmt: skip


def start(runs: Path, config: dict[str, Any], interpreter: str = sys.executable) -> subprocess.Popen[str]:
    file = runs.parent / f"config{config['batch_size']}.json"
    file.write_text(json.dumps(config))
    return subprocess.Popen(
        [interpreter, "-B", "-m", "ictrain", str(file)],
        cwd=EXAMPLE, env={**os.environ, "OUTPUT_DIR": str(runs)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip


def finish(*running: subprocess.Popen[str]) -> None:
    for process in running:
        said, _ = process.communicate(timeout=280)
        assert process.returncode == 0, said


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run, and its directory."""
    runs = tmp_path_factory.mktemp("ic") / "runs"
    finish(start(runs, CONFIG))
    (directory,) = [path for path in runs.iterdir() if path.is_dir()]
    return directory


def test_the_metadata_is_the_configuration_and_what_became_of_it(trained: Path) -> None:
    metadata = json.loads((trained / "metadata.json").read_text())
    assert re.fullmatch(r"\d{4}_\d\d_\d\d-\d\d_\d\d_\d\d", trained.name)
    for name in ("batch_size", "max_epochs", "model", "callbacks"):
        assert metadata[name] == CONFIG[name]
    assert metadata["dataset"].items() >= CONFIG["dataset"].items()
    assert {"seed_split_test", "seed_split_val", "seed_shuffle"} < metadata["dataset"].keys()
    assert (metadata["id"], metadata["path"]) == (trained.name, str(trained))
    assert metadata["label_mapping_path"] == str(trained / "label_mapping.json")
    assert metadata["script_ver"] == "0.1.0" and metadata["time"] > 0 and metadata["epoch_count"] == 20
    assert metadata["scores"].keys() == SCORES
    assert metadata["scores"]["accuracy"] > 0.7, "five classes: chance is 0.2"
    assert metadata["scores"]["AUC"] > 0.9


def test_labels_and_model_are_where_they_were(trained: Path) -> None:
    """What is in the model is the subject of test_ic_train_model."""
    labels = json.loads((trained / "label_mapping.json").read_text())
    assert labels == ["daisy", "dandelion", "roses", "sunflowers", "tulips"]
    assert [path.name for path in (trained / "best_model").iterdir()] == ["saved_model.pb"]


def test_the_row_in_the_table_has_dotted_names(trained: Path) -> None:
    (row,) = csv.DictReader((trained.parent / "runs.csv").read_text().splitlines())
    metadata = json.loads((trained / "metadata.json").read_text())
    assert row["id"] == trained.name
    assert float(row["model.classifier.dropout"]) == 0.2 and row["dataset.downsample"] == ""
    assert float(row["scores.accuracy"]) == metadata["scores"]["accuracy"]


def records(file: Path) -> Iterator[bytes]:
    """The records of an event file, their checksums compared with those of another reader of the format."""
    data, offset = file.read_bytes(), 0
    while offset < len(data):
        (length,) = struct.unpack_from("<Q", data, offset)
        assert struct.unpack_from("<I", data, offset + 8)[0] == masked(data[offset : offset + 8])
        body = data[offset + 12 : offset + 12 + length]
        assert struct.unpack_from("<I", data, offset + 12 + length)[0] == masked(body)
        yield body
        offset += 16 + length


def masked(data: bytes) -> int:
    crc = castagnoli(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def castagnoli(data: bytes) -> int:
    """Bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_the_checksum_is_the_castagnoli_one() -> None:
    assert castagnoli(b"123456789") == 0xE3069283


@pytest.mark.parametrize("part", ["train", "validation"])
def test_the_curves_can_be_read(trained: Path, part: str) -> None:
    (file,) = (trained / part).iterdir()
    assert file.name.startswith("events.out.tfevents.")
    version, *epochs = records(file)
    assert version.endswith(b"brain.Event:2")
    assert len(epochs) == 20
    assert all(b"epoch_loss" in event and b"epoch_accuracy" in event and b"scalars" in event for event in epochs)
    losses = [struct.unpack("<f", re.search(rb"\x2a\x04(.{4})", event, re.DOTALL)[1])[0] for event in epochs]  # type: ignore[index]
    assert losses[-1] < losses[0]


def test_runs_at_the_same_time_lose_no_row_and_share_no_directory(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    short = {**CONFIG, "max_epochs": 1}
    finish(*(start(runs, {**short, "batch_size": size}) for size in (8, 16, 24, 32, 40)))
    rows = {row["id"]: row for row in csv.DictReader((runs / "runs.csv").read_text().splitlines())}
    directories = {path.name for path in runs.iterdir() if path.is_dir()}
    assert rows.keys() == directories and len(rows) == 5
    assert sorted(int(row["batch_size"]) for row in rows.values()) == [8, 16, 24, 32, 40]
    assert all(row["scores.F1"] for row in rows.values())
    assert not list(runs.glob(".*")), "nothing half-written is left"


@pytest.mark.component("pytables")
def test_the_table_is_hdf5_where_pandas_can_write_it(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    short = {**CONFIG, "max_epochs": 1}
    finish(*(start(runs, {**short, "batch_size": size}, str(TRAINER_PYTHON)) for size in (8, 16)))
    read = (
        "import json, pandas, sys; f = pandas.read_hdf(sys.argv[1], 'runs'); print(f.index.name, f.to_json())\n"
        "print(f.nlargest(1, 'scores.accuracy')['batch_size'].dtype, f['dataset.data_augmentation'].dtype)"
    )
    done = subprocess.run(
        [str(TRAINER_PYTHON), "-c", read, str(runs / "runs.h5")], capture_output=True, text=True, check=True
    )
    first, types = done.stdout.splitlines()
    name, _, table = first.partition(" ")
    assert (name, types) == ("id", "int64 bool")
    columns = json.loads(table)
    assert sorted(columns["batch_size"].values()) == [8, 16]
    assert set(columns["path"]) == {path.name for path in runs.iterdir() if path.is_dir()}
    assert "scores.AUC" in columns and not (runs / "runs.csv").exists()
