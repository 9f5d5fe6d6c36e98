"""Lines of metrics.jsonl, good and bad."""

from __future__ import annotations

import json
import math

import pytest

from runyard.model import metrics
from runyard.model.metrics import LONGEST_LINE, LONGEST_NAME, SLICE, Point


def points(*lines: bytes | str) -> list[Point]:
    data = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
    return metrics.parse(data).points


def test_a_line_gives_a_point_for_each_name() -> None:
    found = points('{"t": 5.5, "step": 3, "m": {"loss": 0.1, "val/acc": 1}}')
    assert found == [Point(3, 5.5, "loss", 0.1), Point(3, 5.5, "val/acc", 1.0)]
    assert isinstance(found[0].step, int)


@pytest.mark.parametrize(
    ("step", "expected"),
    [("7", 7), ("7.0", 7), ("7.5", 7.5), ("-1", -1), ("null", None), ('"7"', None), ("NaN", None), ("Infinity", None)],
)
def test_steps(step: str, expected: float | None) -> None:
    assert points(f'{{"t": 1, "step": {step}, "m": {{"a": 1}}}}')[0].step == expected


def test_a_step_and_a_time_may_be_absent() -> None:
    assert points('{"m": {"a": 1}}') == [Point(None, 0.0, "a", 1.0)]


def test_numbers_that_json_does_not_have() -> None:
    values = [point.value for point in points('{"m": {"a": NaN, "b": Infinity, "c": -Infinity}}')]
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf]


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b"\xff\xfe\x00\x01",
        b'{"t": 1, "m": {"a": 1}',  # torn
        b'"text"',
        b"[1, 2]",
        b"[",
        b"]",
        b"null",
        b'{"t": 1, "m": [1]}',
        b'{"m": {"a": "text", "b": null, "c": [1], "d": {}}}',
        b'{"m": {"a": 1' + b"0" * 5000 + b"}}",  # more digits than Python reads
        b'{"m": {"a": 1' + b"0" * 400 + b"}}",  # more than a float holds
        b'{"m": {"a": 1}}, {"m": {"b": 1}}',
        b"[" * 100_000,
        b"",
        b"   ",
    ],
)
def test_what_is_no_line_of_metrics_is_passed_over_and_hurts_no_other(line: bytes) -> None:
    found = points('{"m": {"first": 1}}', line, '{"m": {"second": 2}}')
    assert [point.name for point in found] == ["first", "second"]


@pytest.mark.parametrize("name", ["loss", "val/loss", "käse", "a b", "x=y,z", "日本", "🙂", "%s{}", "'; DROP TABLE"])
def test_names_stay_as_they_are(name: str) -> None:
    assert points(json.dumps({"m": {name: 1}}))[0].name == name


def test_names_that_no_store_keeps_and_no_terminal_shows_are_mended() -> None:
    names = [point.name for point in points(json.dumps({"m": {"a\x00b": 1, "a\ud800": 1, "\x1b[2J": 1, "": 1}}))]
    assert names == ["a\ufffdb", "a\ufffd", "\ufffd[2J", "\ufffd"]
    assert len(points(json.dumps({"m": {"x" * 9999: 1}}))[0].name) == LONGEST_NAME


def test_a_summary_is_kept_and_its_numbers_are_values_too() -> None:
    line = {"t": 9, "summary": {"acc": 0.9, "note": "good", "ok": True, "none": None, "list": [1]}}
    found = metrics.parse(json.dumps(line).encode())
    assert found.summary == {"acc": 0.9, "note": "good", "ok": True, "none": None}
    assert found.points == [Point(None, 9.0, "acc", 0.9), Point(None, 9.0, "ok", 1.0)]


def test_whole_lines() -> None:
    assert metrics.whole(b"one\ntwo\nthr") == 8
    assert metrics.whole(b"thr") == 0
    assert metrics.whole(b"x" * LONGEST_LINE) == LONGEST_LINE


def test_slices_hold_every_line_once() -> None:
    lines = [json.dumps({"step": step, "m": {"a": step}}).encode() for step in range(10_000)]
    data = b"\n".join(lines) + b"\n"
    parts = list(metrics.slices(data))
    assert len(parts) > len(data) // SLICE // 2
    assert [point.step for part in parts for point in part.points] == list(range(10_000))


@pytest.mark.parametrize("value", [0.5, math.inf, -math.inf, 3])
def test_values_travel_as_json(value: float) -> None:
    assert metrics.from_json(json.loads(json.dumps(metrics.to_json(value), allow_nan=False))) == value
    assert math.isnan(metrics.from_json(metrics.to_json(math.nan)))
