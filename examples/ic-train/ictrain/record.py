"""What is kept of a run: its directory, `metadata.json`, and its row in the table of all runs."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

VERSION = "0.1.0"


class RunsConfig:
    """Where runs are kept; the file that `-r` names has the fields of the old one."""

    def __init__(self, directory: Path, table: str = "runs.h5", key: str = "runs") -> None:
        self.directory, self.table, self.key = directory, table, key

    @classmethod
    def load(cls, path: str | None, default: Path) -> RunsConfig:
        if not path:
            return cls(default)
        given = json.loads(Path(path).read_text(encoding="utf-8"))
        return cls(Path(given["runs_dir"]), given.get("runs_hdf", "runs.h5"), given.get("runs_hdf_key", "runs"))


class Record:
    """One run's metadata: the configuration it was asked for, and what became of it."""

    def __init__(self, runs: RunsConfig, config: Mapping[str, Any]) -> None:
        self._runs = runs
        self.directory = _make_directory(runs.directory)
        labels = self.directory / "label_mapping.json"
        self.metadata: dict[str, Any] = {
            **json.loads(json.dumps(config)),
            "id": self.directory.name,
            "script_ver": VERSION,
            "path": str(self.directory),
            "label_mapping_path": str(labels),
        }

    def write_labels(self, names: list[str]) -> None:
        write_json(self.directory / "label_mapping.json", names)

    def save(self) -> None:
        """The whole of it, or nothing: a reader never sees half a file, and no two runs lose each other's row."""
        write_json(self.directory / "metadata.json", self.metadata)
        with _lock(self._runs.directory / "runs.lock"):
            _save_row(self._runs, self.metadata["id"], flatten(self.metadata))


def _make_directory(below: Path) -> Path:
    """Named by the second, with a number behind it where two runs begin in the same one."""
    below.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y_%m_%d-%H_%M_%S")
    number = 1
    while True:
        directory = below / (stamp if number == 1 else f"{stamp}-{number}")
        with contextlib.suppress(FileExistsError):
            directory.mkdir()
            return directory
        number += 1


def write_json(path: Path, value: Any) -> None:
    """Encoded first, then put in place at once: what cannot be encoded leaves the old file as it was."""
    text = json.dumps(value, indent=2)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, path)


def flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """One level, with dots in the names: `model.classifier.dropout`."""
    found: dict[str, Any] = {}
    for name, item in value.items():
        found.update(flatten(item, f"{prefix}{name}.") if isinstance(item, Mapping) else {f"{prefix}{name}": item})
    return found


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _save_row(runs: RunsConfig, run_id: str, row: dict[str, Any]) -> None:
    """Into the HDF5 file where pandas and PyTables are installed, and into `runs.csv` beside it where they are not."""
    try:
        import pandas
        import tables  # noqa: F401
    except ImportError:
        _save_csv_row(runs.directory / Path(runs.table).with_suffix(".csv"), run_id, row)
    else:
        _save_hdf_row(pandas, runs.directory / runs.table, runs.key, run_id, row)


def _save_csv_row(path: Path, run_id: str, row: dict[str, Any]) -> None:
    rows = {}
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            rows = {old["id"]: old for old in csv.DictReader(file)}
    rows[run_id] = {name: "" if item is None else item for name, item in row.items()}
    names = list(dict.fromkeys(["id", *(name for old in rows.values() for name in old)]))
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with fresh.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        writer.writerows(rows.values())
    os.replace(fresh, path)


def _save_hdf_row(pandas: Any, path: Path, key: str, run_id: str, row: dict[str, Any]) -> None:
    import warnings

    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    columns = {name: item for name, item in row.items() if name != "id"}
    frame = pandas.DataFrame([columns], index=pandas.Index([run_id], name="id")).astype(object)
    if path.exists():
        old = pandas.read_hdf(path, key)
        frame = pandas.concat([old.drop(index=run_id, errors="ignore"), frame])
    frame = frame.infer_objects()  # numbers are numbers: what plots and sorts the table asks for that
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns of mixed values are stored as objects, as they were before
        frame.to_hdf(fresh, key=key, mode="w")
    os.replace(fresh, path)
