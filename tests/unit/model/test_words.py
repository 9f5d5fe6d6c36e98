"""Selectors, exit codes, states, wire bodies."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from runyard import errors
from runyard.model import ranges
from runyard.model.exit_codes import wait_code
from runyard.model.resources import Capacity, Gpu, Resources
from runyard.model.selectors import parse_selectors, sweep_number
from runyard.model.states import RUN_MOVES, AttemptState, Reason, RunState, attempt_advances, check_run_move
from runyard.model.wire import AttemptKey, Claim, Hello, Report, StopOrder, SyncRequest, SyncResponse


def test_selectors() -> None:
    chosen = parse_selectors(["42", "3-5", "last", "4,7"])
    assert chosen.ids == (42, 3, 4, 5, 7)
    assert chosen.last


@pytest.mark.parametrize(
    ("numbers", "said"),
    [([4], "4"), ([1, 2, 3], "1-3"), ([9, 1, 2, 4], "1-2,4,9"), ([10, 9], "9-10"), (range(5, 100), "5-99")],
)
def test_ranges_are_written_as_selectors_read_them(numbers: Sequence[int], said: str) -> None:
    assert ranges.show(numbers) == said
    assert list(parse_selectors([said]).ids) == sorted(numbers)
    assert ranges.show([]) == ""


@pytest.mark.parametrize("word", ["", ",", "5-3", "1-9999999", "9" * 30, "1-" + "9" * 5000])
def test_what_selects_nothing(word: str) -> None:
    with pytest.raises(errors.InvalidInput):
        parse_selectors([word])


def test_a_sweep_selects_its_runs() -> None:
    chosen = parse_selectors(["S3", "7", "s12,S3"])
    assert (chosen.sweeps, chosen.ids) == ((3, 12), (7,))


@pytest.mark.parametrize("name", ["x", "first try", "a,b", "12,b", "-1", "1-", "¹", "../1", "S", "S" + "9" * 30])
def test_what_can_be_nothing_else_is_the_name_of_a_sweep(name: str) -> None:
    chosen = parse_selectors([name])
    assert (chosen.sweeps, chosen.sweep, chosen.ids, chosen.last) == ((name,), name, (), False)
    assert parse_selectors([name, "7"]).sweep is None
    assert parse_selectors([name, "S1"]).sweeps == (name, 1)


def test_the_number_of_a_sweep() -> None:
    assert [sweep_number(word) for word in ("S1", "s12", "7", 3)] == [1, 12, 7, 3]


@pytest.mark.parametrize("word", ["", "S", "SS1", "S-1", "S1 ", "S¹", "last", "S" + "9" * 30])
def test_what_is_no_sweep(word: str) -> None:
    with pytest.raises(errors.InvalidInput, match="is not a sweep") as raised:
        sweep_number(word)
    assert "runyard sweep list" in raised.value.fix


@pytest.mark.parametrize(
    ("state", "reason", "code", "expected"),
    [
        ("succeeded", None, 0, 0),
        ("failed", "error", 3, 3),
        ("failed", "error", 137, 137),
        ("cancelled", "user", 143, 200),
        ("failed", "timeout", 143, 201),
        ("failed", "oom", 137, 202),
        ("failed", "lost", None, 203),
        ("failed", "launch", None, 204),
        ("failed", "dependency", None, 204),
    ],
)
def test_exit_codes(state: str, reason: str | None, code: int | None, expected: int) -> None:
    assert wait_code(state, reason, code) == expected


def test_every_failure_has_an_exit_code_that_is_not_zero() -> None:
    assert all(wait_code("failed", reason, None) >= 200 for reason in Reason)


def test_only_listed_moves_are_allowed() -> None:
    assert set(RUN_MOVES) == set(RunState)
    check_run_move(1, RunState.QUEUED, RunState.STARTING)
    with pytest.raises(errors.Conflict, match="run 1 is succeeded and cannot become running"):
        check_run_move(1, RunState.SUCCEEDED, RunState.RUNNING)


def test_attempts_only_go_forward() -> None:
    assert attempt_advances(AttemptState.CLAIMED, AttemptState.RUNNING)
    assert not attempt_advances(AttemptState.RUNNING, AttemptState.RUNNING)
    assert not attempt_advances(AttemptState.RUNNING, AttemptState.SUBMITTED)


def test_wire_bodies_survive_json() -> None:
    key = AttemptKey(run=4, attempt=2)
    capacity = Capacity(cpus=2, memory=5, gpus=(Gpu(uuid="u", type="t", memory=1),))
    claim = Claim(
        key=key, batch="b", position=1, spec={"command": "x"}, argv=["x"], resources=Resources(cpus=2, time=5),
        avoid=("n1", "n2"),
    )  # fmt: skip
    report = Report(
        key=key,
        state=AttemptState.ENDED,
        record={"ending": "exit"},
        outputs=[{"path": "p", "size": 1, "digest": f"sha256:{'0' * 64}", "mode": 0o644}],
    )
    stop = StopOrder(key=key, reason="user")
    bodies = [
        Hello(site="s", agent="a", node="n", boot_id="b", version="v", total=capacity),
        SyncRequest(site="s", agent="a", incarnation=3, free=capacity, ahead=2, reports=[report]),
        SyncResponse(claims=[claim], stops=[stop], settled=[key], more=True),
    ]
    for body in bodies:
        read = type(body).parse
        assert read(json.loads(json.dumps(body.to_json()))) == body


def test_errors_cross_http() -> None:
    error = errors.Unsatisfiable("no", "fix")
    again = errors.from_json(error.status, json.loads(json.dumps(error.to_json())))
    assert type(again) is errors.Unsatisfiable
    assert (again.message, again.fix) == ("no", "fix")
    assert type(errors.from_json(502, "<html>")) is errors.RunyardError
