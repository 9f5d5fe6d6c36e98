"""Whoever posted run configurations to the Training Runs server posts them here, and they train."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard.cli.input import spec_file
from tests.acceptance.witness import until
from tests.labs.components import TRAINER_PYTHON
from tests.labs.yard import Yard

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "ic-train"
PAGE = ROOT / "docs" / "howto" / "from-training-runs.md"

pytestmark = pytest.mark.component("curl")

ELSEWHERE = ("docker ", "runyard up --reload")  # test_deploy has the services, test_reload what stays in a terminal

# One run at a time: a second one beside the first finds its directory there, and fails.
ALONE = "mkdir {place}/busy && {work}; code=$?; rmdir {place}/busy; exit $code"


class Lab:
    """A machine with one slot, a copy of the example, and curl."""

    def __init__(self, place: Path, config: str = "") -> None:
        self.yard = Yard(cpus=1)
        self.yard.env["PATH"] = f"{Path(sys.executable).parent}:{self.yard.env['PATH']}"
        (self.yard.home / "config.toml").write_text(config)
        self.example = place / "ic-train"
        shutil.copytree(EXAMPLE, self.example, ignore=shutil.ignore_patterns("__pycache__"))
        self.yard.start()

    def add_recipe(self, work: str, **more: Any) -> None:
        """The example's recipe, with its work watched over."""
        recipe = spec_file.read(str(self.example / "recipe.yaml"))
        recipe |= {"command": ALONE.format(place=self.example, work=work), "cwd": str(self.example), **more}
        self.yard.client().put_recipe("ic-train", recipe, default=True)

    def curl(self, *words: str) -> Any:
        place = self.yard.url.removeprefix("http://127.0.0.1")
        sent = ["curl", "-sS", *(word.replace(":9090", place) for word in words)]
        done = subprocess.run(sent, cwd=self.example, capture_output=True, text=True, timeout=180, check=True)
        return json.loads(done.stdout)

    def ended(self, ids: list[int]) -> list[dict[str, Any]]:
        client = self.yard.client()
        runs = [client.run(number).wait(280) for number in ids]
        return [run.refresh().data for run in runs]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    yield made
    made.yard.remove()


@pytest.fixture
def trusting(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path, 'trusted_networks = ["127.0.0.0/8"]\n')
    yield made
    made.yard.remove()


@pytest.mark.long
def test_a_grid_of_72_trains_one_by_one(lab: Lab, tmp_path: Path) -> None:
    runs_dir = tmp_path / "media" / "runs"
    config = tmp_path / "runs_config.json"
    config.write_text(json.dumps({"runs_dir": str(runs_dir), "runs_hdf": "runs.h5", "runs_hdf_key": "runs"}))
    lab.add_recipe("python -m ictrain", env={"RUNS_CONFIG": str(config)})
    token = f"X-Token: {lab.yard.token}"
    reply = lab.curl("-H", token, "-X", "POST", "localhost:9090/request", "-d", "@grid.json")
    assert len(reply["ids"]) == 72
    shown = lab.ended(reply["ids"])
    assert [run["state"] for run in shown] == ["succeeded"] * 72, shown
    assert all(run["attempt"] == 1 for run in shown)
    rows = list(csv.DictReader((runs_dir / "runs.csv").read_text().splitlines()))
    assert len(rows) == len(list(runs_dir.glob("*/metadata.json"))) == 72
    assert {float(row["scores.accuracy"]) > 0 for row in rows} == {True}
    asked = {(run["params"]["batch_size"], run["params"]["model"]["learning_rate"]) for run in shown}
    assert {(int(row["batch_size"]), float(row["model.learning_rate"])) for row in rows} == asked
    status = lab.curl("-H", token, "localhost:9090/status")
    assert status["counts"] == {"queued": 0, "starting": 0, "running": 0}


@pytest.mark.component("pytables")
def test_a_grid_is_in_the_hdf5_table_where_pandas_can_write_it(lab: Lab, tmp_path: Path) -> None:
    runs_dir, config = tmp_path / "media" / "runs", tmp_path / "runs_config.json"
    config.write_text(json.dumps({"runs_dir": str(runs_dir)}))
    lab.add_recipe(f"{TRAINER_PYTHON} -m ictrain", env={"RUNS_CONFIG": str(config)})
    grid = {"_run_group_type": "grid", "batch_size": [16, 32], "max_epochs": 1, "model": {"base": ["Xception"]}}
    token = f"X-Token: {lab.yard.token}"
    reply = lab.curl("-H", token, "-X", "POST", "localhost:9090/request", "-d", json.dumps(grid))
    assert [run["state"] for run in lab.ended(reply["ids"])] == ["succeeded"] * 2
    read = "import pandas, sys; print(sorted(pandas.read_hdf(sys.argv[1], 'runs')['batch_size']))"
    words = [str(TRAINER_PYTHON), "-c", read, str(runs_dir / "runs.h5")]
    assert subprocess.run(words, capture_output=True, text=True, timeout=180, check=True).stdout == "[16, 32]\n"
    assert not (runs_dir / "runs.csv").exists()


def test_the_same_without_a_token_on_a_trusted_network(trusting: Lab) -> None:
    trusting.add_recipe("true")
    reply = trusting.curl("-X", "POST", "localhost:9090/request", "-d", "@grid.json")
    assert len(reply["ids"]) == 72
    shown = trusting.ended(reply["ids"])
    assert [run["state"] for run in shown] == ["succeeded"] * 72
    assert {run["owner"] for run in shown} == {"trusted-network"}
    seen = trusting.curl(f"localhost:9090{reply['url']}")["runs"]
    assert {run["state"] for run in seen} == {"succeeded"} and len(seen) == 72


BAD = {
    "not JSON": ("/request", "batch_size=32", "the body is not JSON"),
    "no such recipe": ("/request/ic-trian", "{}", "there is no recipe 'ic-trian'"),
    "outside the schema": (
        "/request", '{"model": {"learning_rate": 5}}', "params.model.learning_rate: 5 is more than the maximum 1",
    ),
    "above the bounds": (
        "/request", '{"resources": {"cpus": 3}}',
        "params.resources.cpus: 3 cpus is more than the 2 cpus that recipe 'ic-train' allows",
    ),
    "more than any site has": ("/request", '{"resources": {"cpus": 2}}', "no site can ever give 2 cpus"),
    "a huge grid": (
        "/request", json.dumps({"_run_group_type": "grid", **{f"p{n}": list(range(10)) for n in range(9)}}),
        "grid: it has 1,000,000,000 configurations, more than 10,000",
    ),
    "one of a grid": (
        "/request", '{"_run_group_type": "grid", "batch_size": [32, 0]}',
        "runs[1]: params.batch_size: 0 is less than the minimum 1",
    ),
}  # fmt: skip


def test_bad_input_is_one_sentence_and_starts_nothing(lab: Lab) -> None:
    lab.add_recipe("true")
    token = f"X-Token: {lab.yard.token}"
    until(lambda: lab.yard.client().agents(), what="an agent that says what it has")
    for path, body, message in BAD.values():
        error = lab.curl("-H", token, "-X", "POST", f"localhost:9090{path}", "-d", body)["error"]
        assert error["message"].startswith(message), error
        assert "\n" not in error["message"]
    refused = lab.curl("-X", "POST", "localhost:9090/request", "-d", "@run.json")["error"]
    assert 'trusted_networks = ["127.0.0.0/8"]' in refused["fix"]
    assert sum(lab.yard.client().health()["runs"].values()) == 0


def cells(page: str) -> list[list[str]]:
    rows = [row for row in page.splitlines() if row.startswith("| `")]
    return [[cell.strip().strip("`") for cell in row.strip("|").split(" | ")] for row in rows]


def test_each_new_line_of_the_page_works(tmp_path: Path) -> None:
    """The page is carried out from top to bottom in a fresh home; a refused request is a failure."""
    home = Yard(cpus=2)
    try:
        place = tmp_path / "ic-train"
        shutil.copytree(EXAMPLE, place, ignore=shutil.ignore_patterns("__pycache__"))
        (tmp_path / ".curlrc").write_text("fail\nsilent\nshow-error\n")
        home.env |= {"PATH": f"{Path(sys.executable).parent}:{home.env['PATH']}", "CURL_HOME": str(tmp_path)}
        page = PAGE.read_text(encoding="utf-8")
        lines = re.findall(r"^\$ (.+)$", page, re.MULTILINE)
        lines += [row[1] for row in cells(page) if row[1] and not row[1].startswith(ELSEWHERE)]
        assert len(lines) > 10
        script = "\n".join(["port() { runyard status --json | python -c 'import json, sys; "
                            "print(json.load(sys.stdin)[\"url\"])'; }", *lines])  # fmt: skip
        script = script.replace("http://localhost:9090", "$(port)")
        done = subprocess.run(
            ["sh", "-exc", script], cwd=place, env=home.env, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert list((place / "results").glob("*/metadata.json"))
    finally:
        home.remove()


def test_each_old_line_stands_beside_its_new_one() -> None:
    for old, new in cells(PAGE.read_text(encoding="utf-8")):
        if old.startswith("curl") and "-d" in old:
            plain = re.sub(r' -H "[^"]*"', "", old)
            assert re.sub(r' -H "[^"]*"', "", new) == plain
