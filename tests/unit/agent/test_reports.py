"""Whose word counts when a runner left a record and its scheduler knows more."""

from __future__ import annotations

from typing import Any

import pytest

from runyard.agent.attempts import Attempt
from runyard.agent.report.ending import end_report
from runyard.backends.base import Ending, Job, Presence, Sighting
from runyard.model.resources import Resources
from runyard.model.wire import AttemptKey, Claim

KEY = AttemptKey(run=7, attempt=1)


def _attempt(status: dict[str, Any] | None, ending: Ending | None) -> Attempt:
    claim = Claim(key=KEY, batch="b", position=1, spec={"command": "x"}, argv=["x"], resources=Resources())
    attempt = Attempt(claim=claim, job=Job(key=KEY, directory="/d", tag="t", batch="b", index=1))
    attempt.evidence.status, attempt.over.gone = status, "gone"
    attempt.evidence.sighting = Sighting(presence=Presence.GONE, text="said the scheduler", ending=ending)
    return attempt


def _record(ending: str, stop_reason: str | None = None, signal: int = 15, code: int | None = None) -> dict[str, Any]:
    return {"state": "ended", "ending": ending, "stop_reason": stop_reason, "exit_code": code, "signal": signal}


@pytest.mark.parametrize(
    ("record", "ending", "told"),
    [
        (_record("stopped", "external"), "preempted", "preempted"),
        (_record("stopped", "external"), "timeout", "timeout"),
        (_record("stopped", "external"), "external", "external"),
        (_record("stopped", "lost"), "node_lost", "node_lost"),
        (_record("stopped", "external"), None, "stopped"),
        (_record("stopped", "user"), "preempted", "stopped"),
        (_record("exit"), "preempted", "preempted"),
        (_record("exit"), None, "exit"),
        (_record("exit", signal=0, code=143), "preempted", "preempted"),
        (_record("exit", signal=2), "preempted", "exit"),
        (_record("exit", signal=9), "oom", "oom"),
        (_record("exit", signal=9), None, "exit"),
        (_record("exit", signal=0, code=137), "oom", "oom"),
        (_record("exit", signal=0, code=1), "oom", "exit"),
        (_record("oom", signal=9), "external", "oom"),
        (_record("timeout", "external"), "preempted", "preempted"),
        (_record("timeout", "external"), None, "timeout"),
        (_record("timeout"), "preempted", "timeout"),
        (None, "node_lost", "node_lost"),
    ],
)
def test_the_word_that_counts(record: dict[str, Any] | None, ending: Ending | None, told: str) -> None:
    report = end_report(_attempt(record, ending), "node1")
    assert report.record is not None
    assert report.record["ending"] == told


def test_without_any_word_there_is_no_record() -> None:
    assert end_report(_attempt(None, None), "node1").record is None
