"""Every ending that anybody can report has a verdict, and no verdict calls silence a success."""

from __future__ import annotations

import pytest

from runyard.model.states import Reason, RunState
from runyard.yard.runs.evidence import ENDINGS, judge


@pytest.mark.parametrize("ending", sorted(ENDINGS))
def test_only_an_exit_with_zero_is_success(ending: str) -> None:
    verdict = judge({"ending": ending, "exit_code": None, "signal": None}, None, cancel_wished=False)
    assert verdict.state in (RunState.FAILED, RunState.CANCELLED)
    assert verdict.reason is not None


@pytest.mark.parametrize(
    "ending", ["preempted", "node_lost", "rejected", "timeout", "oom", "launch", "staging", "disk"]
)
def test_an_ending_is_its_reason(ending: str) -> None:
    verdict = judge({"ending": ending, "message": "said so"}, None, cancel_wished=False)
    assert (verdict.state, verdict.reason, verdict.detail) == (RunState.FAILED, Reason(ending), "said so")


def test_silence_is_lost_unless_somebody_asked_for_the_end() -> None:
    assert judge(None, None, cancel_wished=False).reason == Reason.LOST
    wished = judge(None, "killed by scancel", cancel_wished=True)
    assert (wished.state, wished.detail) == (RunState.CANCELLED, "cancelled; killed by scancel")


def test_what_a_scheduler_ended_is_cancelled_by_who_asked_for_it() -> None:
    """A runner that does not hear is ended by its scheduler, on our wish."""
    record = {"ending": "external", "message": "exit status 137"}
    assert judge(record, None, cancel_wished=False).reason == Reason.EXTERNAL
    wished = judge(record, None, cancel_wished=True)
    assert (wished.state, wished.reason) == (RunState.CANCELLED, Reason.USER)
    assert wished.detail == "cancelled; exit status 137"


def test_what_never_began_is_nobodys_fault_and_may_be_cancelled() -> None:
    record = {"ending": "returned", "message": "hoff does not answer"}
    assert judge(record, None, cancel_wished=False).reason == Reason.NODE_LOST
    wished = judge(record, None, cancel_wished=True)
    assert (wished.state, wished.detail) == (RunState.CANCELLED, "cancelled; hoff does not answer")


def test_processes_that_could_not_be_ended_are_told() -> None:
    verdict = judge({"ending": "exit", "exit_code": 0, "tree_gone": False}, None, cancel_wished=False)
    assert "could not be ended" in verdict.detail


def test_an_unknown_signal_has_its_number() -> None:
    assert judge({"ending": "exit", "signal": 63}, None, cancel_wished=False).detail == "killed by signal 63"


def test_a_directory_without_room_is_named() -> None:
    record = {"ending": "exit", "exit_code": 1, "signal": None, "disk_full": True, "full_directory": "/ckpt"}
    verdict = judge(record, None, cancel_wished=False)
    assert (verdict.reason, verdict.detail) == (Reason.DISK, "exited with 1; no space is left in /ckpt")
    assert judge({**record, "exit_code": 0}, None, cancel_wished=False).state is RunState.SUCCEEDED
