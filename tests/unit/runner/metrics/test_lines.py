"""metrics.jsonl of the user's own."""

from __future__ import annotations

import json

import pytest

from tests.unit.runner.metrics.desk import Desk


def write(desk: Desk, *lines: object, name: str = "metrics.jsonl") -> None:
    with (desk.outputs / name).open("a") as file:
        file.write("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))


def test_free_form(desk: Desk) -> None:
    write(desk, {"step": 1, "loss": 0.3, "epoch": 2}, {"epoch": 3, "val": {"acc": 0.5, "deep": {"x": 1}}}, {"loss": 1})
    desk.finish()
    assert [(line["step"], line["m"]) for line in desk.lines()] == [
        (1, {"loss": 0.3, "epoch": 2}),
        (3, {"val/acc": 0.5, "val/deep/x": 1}),
        (None, {"loss": 1}),
    ]


def test_our_form(desk: Desk) -> None:
    write(
        desk,
        {"t": 1763181001.2, "step": 3, "m": {"loss": 0.1, "val/acc": 0.5}},
        {"t": 1763181002.0, "summary": {"acc": 0.9}},
    )
    desk.finish()
    source = {"src": "metrics.jsonl"}
    assert desk.lines() == [
        {"t": 1763181001.2, "step": 3, "m": {"loss": 0.1, "val/acc": 0.5}, **source},
        {"t": 1763181002.0, "summary": {"acc": 0.9}, **source},
    ]


def test_times(desk: Desk) -> None:
    """A time of day is when it was; a duration is a metric like others."""
    write(desk, {"step": 1, "time": 12.5, "loss": 1}, {"step": 2, "timestamp": 1763181001, "loss": 1})
    desk.finish()
    assert desk.curve("time") == [(1, 12.5)]
    assert desk.lines()[1]["t"] == 1763181001


@pytest.mark.parametrize(
    "line",
    ["", "loss: 1", "[1, 2]", "3", "null", "{}", '{"a": "text", "b": true, "c": null, "d": [1]}', '{"step": 3}',
     "[" * 100_000, '{"a": ' * 3000, "\x00\ufffd", '{"a": 1' + "0" * 400 + "}"],
)  # fmt: skip
def test_lines_that_say_nothing(desk: Desk, line: str) -> None:
    write(desk, line, {"loss": 1})
    desk.finish()
    assert [name for name, _, _ in desk.points()] == ["loss"]


def test_a_line_is_read_when_it_is_whole(desk: Desk) -> None:
    data = b"".join(b'{"step": %d, "loss": %d.5}\n' % (step, step) for step in range(3))[:-1]
    with (desk.outputs / "metrics.jsonl").open("ab", buffering=0) as file:
        for byte in data:
            file.write(bytes([byte]))
            desk.look()
    assert desk.curve("loss") == [(0, 0.5), (1, 1.5)]
    desk.finish()
    assert desk.curve("loss") == [(0, 0.5), (1, 1.5), (2, 2.5)]


def test_steps_as_people_write_them(desk: Desk) -> None:
    write(desk, *({"step": step, "x": 1} for step in (3.0, 0.5, -1, float("nan"), "4", 10**30)))
    desk.finish()
    assert [step for _, step, _ in desk.points()] == [3, 0.5, -1, None, None, None]


def test_numbers_that_are_none(desk: Desk) -> None:
    write(desk, {"a": float("nan"), "b": float("inf"), "c": float("-inf")})
    desk.finish()
    assert str(desk.points()) == "[('a', None, nan), ('b', None, inf), ('c', None, -inf)]"


def test_odd_names(desk: Desk) -> None:
    names = ["a b", "ünï/日本", "quo\"te'", "new\nline", "\udcff", "", "x" * 1000]
    write(desk, {name: number for number, name in enumerate(names)})
    desk.finish()
    assert [value for _, _, value in desk.points()] == [0, 1, 2, 3, 4, 6]
    assert desk.points()[-1][0] == "x" * 250
