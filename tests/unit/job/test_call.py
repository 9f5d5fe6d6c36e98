"""A function as a run."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.unit.job.conftest import Place


def call(place: Place, target: str, params: dict[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
    (place.directory / "p.json").write_text(json.dumps(params or {}))
    return subprocess.run(
        [sys.executable, "-m", "runyard.job.call", target], cwd=place.directory, capture_output=True, text=True,
        env={**place.env, **place.inside, "RUNYARD_PARAMS": str(place.directory / "p.json")}, timeout=120, check=False,
    )  # fmt: skip


def write(place: Place, path: str, text: str) -> None:
    file = place.directory / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def result(place: Place) -> Any:
    return json.loads((place.directory / "out" / "result.json").read_text())


def test_parameters_are_keywords_and_the_result_is_kept(place: Place) -> None:
    write(
        place, "train.py", "def train(lr, width=3):\n    return {'loss': lr, 'width': width, 'name': 'x', 'ok': True}"
    )
    done = call(place, "train.py:train", {"lr": 0.5})
    assert done.returncode == 0, done.stderr
    assert result(place) == {"loss": 0.5, "width": 3, "name": "x", "ok": True}
    assert [line["summary"] for line in place.lines()] == [{"loss": 0.5, "width": 3}]


def test_a_file_in_a_package_is_imported_as_a_part_of_it(place: Place) -> None:
    write(place, "src/nets/__init__.py", "")
    write(place, "src/nets/base.py", "BASE = 40")
    write(place, "src/nets/train.py", "from .base import BASE\ndef train(more): return BASE + more, __name__")
    assert call(place, "src/nets/train.py:train", {"more": 2}).returncode == 0
    assert result(place) == [42, "nets.train"]


def test_a_module_is_found_from_here(place: Place) -> None:
    write(place, "nets/train.py", "def train(): return 1")
    assert call(place, "nets.train:train").returncode == 0
    assert (result(place), place.lines()[0]["summary"]) == (1, {"result": 1.0})


def test_numbers_of_numpy_are_plain_in_the_result(place: Place) -> None:
    code = "import numpy as np\ndef train(): return {'a': np.float32(0.5), 'b': np.arange(2), 'c': {1}, 'n': np.nan}"
    write(place, "train.py", code)
    assert call(place, "train.py:train").returncode == 0
    found = result(place)
    assert (found["a"], found["b"], found["c"], found["n"] != found["n"]) == (0.5, [0, 1], [1], True)


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("train.py:train", "train returned something that JSON does not have"),
        ("train.py:nothing", "has no attribute 'nothing'"),
        ("missing.py:train", "there is no file missing.py in"),
        ("missing:train", "No module named 'missing'"),
        ("train.py", "usage:"),
    ],
)
def test_what_cannot_be_called_is_told_in_one_sentence(place: Place, target: str, sentence: str) -> None:
    write(place, "train.py", "def train(): return object()")
    done = call(place, target)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (place.directory / "out" / "result.json").exists()


def test_an_error_of_the_function_is_shown_as_ever(place: Place) -> None:
    write(place, "train.py", "def train(): raise ValueError('no such layer')")
    done = call(place, "train.py:train")
    assert done.returncode == 1
    assert "Traceback" in done.stderr and "ValueError: no such layer" in done.stderr
