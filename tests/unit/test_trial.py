"""The judge of `make trial` finds what is wrong: runs that are lost, doubled, or not as they were."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.trial import chaos
from tests.trial.invariants import Submitted, Trial
from tests.trial.plans import PLANS
from tests.trial.record import Record


def attempt(outcome: str = "succeeded", reason: str | None = None, code: int | None = 0, number: int = 1) -> Any:
    return {"number": number, "outcome": outcome, "reason": reason, "exit_code": code, "detail": "its runner is gone"}


def shown(*attempts: Any) -> dict[str, Any]:
    last = attempts[-1]
    return {"state": last["outcome"], "reason": last["reason"], "detail": last["detail"], "attempts": list(attempts)}


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path)


def execute(record: Record, body: str, number: int = 1) -> int:
    """As a runner does it."""
    env = {"RUNYARD_RUN_ID": "7", "RUNYARD_ATTEMPT": str(number), "PATH": "/usr/bin:/bin"}
    return subprocess.run(record.command(body), env=env, check=False).returncode


def violations(
    record: Record, answer: dict[str, Any] | None, kind: str = "exit 0", retries: int = 0, **more: Any
) -> list[str]:
    run = Submitted(id=7, kind=kind, plan=PLANS[kind], retries=retries)
    return Trial(shown={7: answer} if answer else {}, found=record.read(), **more).violations([run])


def test_a_run_that_was_as_it_is_shown(record: Record) -> None:
    assert execute(record, "sign end 1; exit 1") == 1
    assert violations(record, shown(attempt("failed", "error", 1)), "exit 1") == []


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (None, "does not know it"),
        (shown(attempt(code=1)), "the yard says 1"),
        (shown(attempt("failed", "error", 0)), "planned"),
        (shown(attempt("failed", "lost", None)), "planned"),
        (shown(attempt("failed", "lost", None), attempt(number=2)), "no fault hit it"),
        ({**shown(attempt()), "state": "running"}, "does not end"),
    ],
)
def test_what_is_not_as_it_was(record: Record, answer: dict[str, Any] | None, complaint: str) -> None:
    execute(record, "sign end 0")
    assert complaint in " ".join(violations(record, answer))


def test_a_run_that_was_never_executed(record: Record) -> None:
    assert "never executed" in " ".join(violations(record, shown(attempt())))


def test_an_attempt_that_was_executed_twice(record: Record) -> None:
    execute(record, "sign end 0")
    execute(record, "sign end 0")
    assert "executed 2 times" in " ".join(violations(record, shown(attempt())))


def test_two_attempts_at_once(record: Record) -> None:
    first = subprocess.Popen(
        record.command("read line; alive"),
        stdin=subprocess.PIPE, env={"RUNYARD_RUN_ID": "7", "RUNYARD_ATTEMPT": "1", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    while not record.path.read_text():
        pass
    execute(record, "sign end 0", number=2)
    first.communicate(b"\n")
    answer, killed = shown(attempt("failed", "lost", None), attempt(number=2)), frozenset({(7, 1)})
    found = violations(record, answer, retries=1, killed=killed)
    assert found == ["run 7 (exit 0): attempt 1 went on beside a later one"]


def test_a_killed_run_is_tried_again_and_says_why(record: Record) -> None:
    execute(record, "true")
    lost, killed = attempt("failed", "lost", None), frozenset({(7, 1)})
    assert violations(record, shown(lost), killed=killed) == []
    assert "not tried again" in " ".join(violations(record, shown(lost), retries=1, killed=killed))
    assert "no detail" in " ".join(violations(record, shown({**lost, "detail": None}), killed=killed))


def test_a_seed_draws_the_same_again() -> None:
    assert chaos.Configuration.drawn(7) == chaos.Configuration.drawn(7)
    assert len({str(chaos.Configuration.drawn(seed)) for seed in range(40)}) > 10
