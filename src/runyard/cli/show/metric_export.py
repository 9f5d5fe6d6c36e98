"""Every metric value of runs in one file: one row per step of each run, one column per metric."""

from __future__ import annotations

import csv
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from runyard import errors
from runyard.client import Run
from runyard.client import metrics as client_metrics
from runyard.model.series import Table

RUN = "run"
ROWS_AT_ONCE = 50_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Export:
    tables: dict[int, Table]  # by run
    columns: list[str]

    @property
    def size(self) -> int:
        return sum(len(table) for table in self.tables.values())

    def rows(self) -> Iterator[dict[str, Any]]:
        for run, table in self.tables.items():
            for row in table.rows():
                yield {RUN: run, **row}


def collect(names: Mapping[Run, Sequence[str]]) -> Export:
    """The metrics to export, by run."""
    tables = {run.id: _table(run, some) for run, some in names.items()}
    columns = dict.fromkeys([RUN, *(name for table in tables.values() for name in table.columns())])
    return Export(tables=tables, columns=list(columns))


def _table(run: Run, names: Sequence[str]) -> Table:
    return client_metrics.table(run.client, run.id, run.data["attempt"], names) if names else Table()


def write_csv(export: Export, file: TextIO) -> None:
    writer = csv.DictWriter(file, export.columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(export.rows())


def to_file(export: Export, form: str, path: Path) -> None:
    """The file is complete, or it does not exist."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _write(export, form, draft)
        os.replace(draft, path)
    except OSError as error:
        raise errors.ConfigError(f"{path} cannot be written: {error.strerror}", "name another file") from None
    finally:
        draft.unlink(missing_ok=True)


def _write(export: Export, form: str, draft: Path) -> None:
    if form == "csv":
        with draft.open("w", encoding="utf-8", newline="") as file:
            write_csv(export, file)
    else:
        _write_parquet(export, draft)


def _write_parquet(export: Export, draft: Path) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise errors.ConfigError("Parquet files need pyarrow", "pip install 'runyard[parquet]'") from None
    kinds = {RUN: pyarrow.int64()}
    schema = pyarrow.schema([(name, kinds.get(name, pyarrow.float64())) for name in export.columns])
    with parquet.ParquetWriter(draft, schema) as writer:
        for rows in _batches(export.rows()):
            columns = [[row.get(name) for row in rows] for name in export.columns]
            writer.write_table(pyarrow.table(columns, schema=schema))


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while batch := list(itertools.islice(rows, ROWS_AT_ONCE)):
        yield batch
