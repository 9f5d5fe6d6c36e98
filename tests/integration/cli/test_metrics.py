"""`runyard metrics`, `runyard plot`, and the same from Python."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas
import pyarrow.parquet
import pytest

from tests.labs.waiting import until
from tests.labs.yard import Yard

SCRIPT = r"""
metrics=$RUNYARD_METRICS
i=0
while [ $i -lt 20 ]; do
    i=$((i+1))
    printf '{"t": %d.5, "step": %d, "m": {"loss": 0.%03d, "a,b": NaN}}\n' $((1000+i)) $i $((500-i)) >>"$metrics"
done
printf '{"t": 2000, "summary": {"acc": 0.9, "note": "good"}}\n' >>"$metrics"
"""


@pytest.fixture(scope="module")
def run(shared: Yard) -> Iterator[int]:
    """One that has reported something, and all of it has arrived."""
    client = shared.client()
    made = client.submit(["sh", "-c", SCRIPT]).wait()
    assert made.state == "succeeded", made.logs()
    until(lambda: len(made.reported()) == 3, "its metrics are there", timeout_s=60)
    yield made.id


def test_a_table(run: int, cli: Callable[..., Any]) -> None:
    lines = cli("metrics", str(run)).stdout.splitlines()
    assert re.split(r" {2,}", lines[0].strip()) == ["METRIC", "LAST", "STEP", "LEAST", "GREATEST", "VALUES"]
    assert [re.split(r" {2,}", line.strip()) for line in lines[1:]] == [
        ["a,b", "nan", "20", "-", "-", "20"],
        ["acc", "0.9", "-", "0.9", "0.9", "1"],
        ["loss", "0.48", "20", "0.48", "0.499", "20"],
    ]


def test_a_document(run: int, document: Callable[..., Any]) -> None:
    found = document("metrics", str(run), "--name", "lo*")
    assert found == {
        "id": run,
        "metrics": [
            {
                "name": "loss",
                "count": 20,
                "first": 0.499,
                "last": 0.48,
                "minimum": 0.48,
                "maximum": 0.499,
                "last_step": 20,
            }
        ],
        "summary": {"acc": 0.9, "note": "good"},
    }


def test_show_tells_the_last_values(run: int, cli: Callable[..., Any], document: Callable[..., Any]) -> None:
    (line,) = [line for line in cli("show", str(run)).stdout.splitlines() if line.split()[:1] == ["metrics"]]
    assert line.split(None, 1)[1] == "a,b nan  acc 0.9  loss 0.48  (at step 20)"
    assert [metric["name"] for metric in document("show", str(run))["metrics"]] == ["a,b", "acc", "loss"]


def test_every_value_as_csv(run: int, cli: Callable[..., Any], tmp_path: Path, document: Callable[..., Any]) -> None:
    rows = list(csv.DictReader(io.StringIO(cli("metrics", str(run), "--csv").stdout)))
    assert list(rows[0]) == ["run", "step", "time", "loss", "a,b", "acc"]
    assert rows[0] == {"run": str(run), "step": "1", "time": "1001.5", "loss": "0.499", "a,b": "nan", "acc": ""}
    assert [row["step"] for row in rows] == [*map(str, range(1, 21)), ""]
    target = tmp_path / "x.csv"
    told = document("metrics", str(run), "-o", str(target), "--name", "loss")
    assert told == {"path": str(target), "rows": 20, "columns": ["run", "step", "time", "loss"]}
    assert len(target.read_text().splitlines()) == 21


def test_every_value_as_parquet(run: int, cli: Callable[..., Any], tmp_path: Path) -> None:
    target = tmp_path / "x.parquet"
    cli("metrics", str(run), "--parquet", "-o", str(target))
    table = pyarrow.parquet.read_table(target)
    assert table.column_names == ["run", "step", "time", "loss", "a,b", "acc"]
    assert table.column("step").to_pylist() == [*map(float, range(1, 21)), None]
    assert table.column("loss").to_pylist()[-2:] == [0.48, None]
    assert table.column("acc").to_pylist()[-1] == 0.9


def test_in_python(run: int, shared: Yard) -> None:
    made = shared.client().run(run)
    frame = made.metrics()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == ["step", "time", "loss", "a,b", "acc"]
    assert frame["loss"].min() == 0.48
    assert list(made.metrics("loss").columns) == ["step", "time", "loss"]
    assert made.summary() == {"acc": 0.9, "note": "good"}
    points = made.points("a,b", "loss", most=4)
    assert len(points["loss"]) == 4
    assert all(math.isnan(value) for _, _, value in points["a,b"])


def test_in_python_without_pandas(run: int, shared: Yard) -> None:
    program = (
        "import sys; sys.modules['pandas'] = None; import json, runyard; "
        f"print(json.dumps(runyard.Client(start=False).run({run}).metrics('loss')[0]))"
    )
    done = subprocess.run([sys.executable, "-c", program], env=shared.env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"step": 1, "time": 1001.5, "loss": 0.499}


def test_a_drawing(run: int, cli: Callable[..., Any]) -> None:
    lines = cli("plot", str(run), "--metric", "loss", "--width", "60", "--height", "8").stdout.splitlines()
    assert lines[0] == f"loss of run {run}"
    assert max(map(len, lines)) <= 60
    assert sum(0x2800 < ord(character) < 0x2900 for line in lines[1:9] for character in line) > 20
    assert lines[-1].endswith("loss")


@pytest.mark.parametrize(("name", "start"), [("x.png", b"\x89PNG"), ("x.svg", b"<svg ")])
def test_a_picture(run: int, cli: Callable[..., Any], tmp_path: Path, name: str, start: bytes) -> None:
    target = tmp_path / name
    told = cli("plot", str(run), "--metric", "loss", "--log", "--smooth", "0.5", "-o", str(target)).stdout
    assert told == f"{target}\n"
    assert target.read_bytes().startswith(start)


def test_what_is_refused(run: int, refused: Callable[..., str], tmp_path: Path) -> None:
    number = str(run)
    assert "reported: a,b, acc, loss" in refused("plot", number, code=2)
    assert "no value is a finite number" in refused("plot", number, "--metric", "a,b", code=1)
    assert "neither .png nor .svg" in refused("plot", number, "--metric", "loss", "-o", "x.gif", code=2)
    assert "-o metrics.parquet" in refused("metrics", number, "--parquet", code=2)
    assert "cannot be written" in refused("metrics", number, "-o", f"{tmp_path}/no/x.csv", code=2)
    assert "cannot be written" in refused("plot", number, "--metric", "loss", "-o", f"{tmp_path}/no/x.png", code=2)


@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"], ["-o", "x.csv"], ["--json", "-o", "x.parquet"]])
def test_a_name_that_nobody_reported(run: int, refused: Callable[..., str], tmp_path: Path, form: list[str]) -> None:
    names = ["--name", "nope", "--name", "loss", "--name", "no/*"]
    said = refused("metrics", str(run), *form, *names, code=1, cwd=tmp_path)
    assert "none of these runs has reported nope or no/*\n" in said
    assert "reported: a,b, acc, loss\n" in said
    assert list(tmp_path.iterdir()) == []


def test_a_curve_that_nobody_reported(run: int, refused: Callable[..., str]) -> None:
    said = refused("plot", str(run), "--metric", "nope", "--metric", "loss", code=1)
    assert "none of these runs has reported nope\n" in said
    assert "reported: a,b, acc, loss\n" in said


def test_a_run_that_reports_nothing(
    shared: Yard, cli: Callable[..., Any], document: Callable[..., Any], refused: Callable[..., str]
) -> None:
    made = shared.client().submit(["true"]).wait()
    assert "no metrics were reported" in cli("metrics", str(made.id)).stderr
    assert document("metrics", str(made.id)) == {"id": made.id, "metrics": [], "summary": {}}
    assert cli("metrics", str(made.id), "--csv").stdout == "run,step,time\n"
    assert "they have reported no metrics yet" in refused("metrics", str(made.id), "--csv", "--name", "loss", code=1)
    assert made.metrics().empty
