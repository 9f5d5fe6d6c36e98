"""Metrics that a run only prints."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from runyard.runner.metrics.patterns import Patterns

pytestmark = pytest.mark.usefixtures("outputs")  # the current directory is an attempt's

LOG = Path("log")


def lines() -> list[dict[str, Any]]:
    path = Path("metrics.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def read(text: str, *patterns: str) -> list[tuple[float | None, dict[str, float]]]:
    LOG.write_text(text)
    Patterns(list(patterns)).finish(float("inf"))
    return [(line["step"], line["m"]) for line in lines()]


def test_named_groups_are_metrics() -> None:
    text = "begin\nepoch 3: loss=0.5, acc=97% done\nepoch 4: loss=nan\n"
    found = read(text, r"epoch (?P<epoch>\d+)", r"loss=(?P<loss>\S+)", r"acc=(?P<acc>[\d.]+)")
    assert str(found) == "[(3, {'loss': 0.5, 'acc': 97.0}), (4, {'loss': nan})]"
    assert lines()[0]["src"] == "stdout"


def test_a_pair_of_groups_names_whatever_is_printed() -> None:
    """The lines of the script that a course has its students hand in."""
    text = "Epoch 01: err(train)=0.31 acc(train)=0.91\n          err(valid)=0.28 acc(valid)=0.92\n"
    assert read(text, r"(?P<name>\w+\(\w+\))=(?P<value>[\d.]+)", r"Epoch (?P<epoch>\d+)") == [
        (1, {"err(train)": 0.31, "acc(train)": 0.91}),
        (None, {"err(valid)": 0.28, "acc(valid)": 0.92}),
    ]


def test_a_progress_bar_returns_to_its_beginning() -> None:
    found = read("10% loss=0.5\r20% loss=0.25\r30% loss=0.125", r"loss=(?P<loss>[\d.]+)")
    assert [values["loss"] for _, values in found] == [0.5, 0.25, 0.125]


def test_lines_are_read_when_they_are_whole() -> None:
    patterns = Patterns([r"loss=(?P<loss>[\d.]+)"])
    with LOG.open("ab", buffering=0) as log:
        for byte in b"loss=0.25\nloss=0.5\nlast loss=1.5":
            log.write(bytes([byte]))
            patterns.read()
    assert [line["m"]["loss"] for line in lines()] == [0.25, 0.5]
    patterns.finish(float("inf"))
    assert [line["m"]["loss"] for line in lines()] == [0.25, 0.5, 1.5]


def test_what_is_no_number_is_no_metric() -> None:
    assert read("loss=abc\nloss=\nloss=1e3\n", r"loss=(?P<loss>\S*)") == [(None, {"loss": 1000.0})]


def test_a_line_without_an_end() -> None:
    found = read("x" * (1 << 20) + "\nloss=0.5\n", r"loss=(?P<loss>\S+)")
    assert found == [(None, {"loss": 0.5})]


def test_an_expression_that_takes_for_ever_is_given_up() -> None:
    text = "loss=0.5\n" + "a" * 60 + "!\nloss=0.25\n"
    assert [values["loss"] for _, values in read(text, r"(?P<x>(a+)+)$", r"loss=(?P<loss>\S+)")] == [0.5, 0.25]
    assert LOG.read_text().endswith(
        "runyard: the metric pattern '(?P<x>(a+)+)$' takes too long and is not used any more\n"
    )
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_an_expression_that_this_python_does_not_know() -> None:
    assert read("loss=0.5\n", "(?P<x>", r"loss=(?P<loss>\S+)") == [(None, {"loss": 0.5})]
    assert "the metric pattern '(?P<x>' cannot be used by the Python of this node" in LOG.read_text()
