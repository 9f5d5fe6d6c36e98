"""Directories of settled attempts go, whoever dies before it comes to that."""

from __future__ import annotations

from typing import Any

from runyard.agent.bring.cache import LANE
from runyard.agent.errands import Done, InlineErrands, Work
from tests.integration.agent.conftest import Crew


class Dying(InlineErrands):
    """Of an agent that is killed before it removes anything."""

    def send(self, lane: str, work: Work, done: Done) -> None:
        if lane != LANE:
            super().send(lane, work, done)


def test_what_a_killed_agent_did_not_come_to_is_removed_by_the_next_one(crew: Crew) -> None:
    key = crew.yard.submit(["true"])
    crew.drive(crew.agent(errands=Dying()), lambda: key in crew.yard.ended, "the settlement")
    assert crew.directory(key).exists()
    crew.drive(crew.agent(), lambda: not crew.directory(key).exists(), "its removal")


def test_a_settlement_that_was_not_heard_is_asked_for(crew: Crew) -> None:
    key = crew.yard.submit(["true"])
    crew.yard.loses_answer = "settled"
    crew.drive(crew.agent(errands=Dying()), lambda: key in crew.yard.ended, "the settlement")
    crew.drive(crew.agent(), lambda: not crew.directory(key).exists(), "its removal")


def test_a_lost_answer_leaves_nothing_behind_in_one_that_lives(crew: Crew) -> None:
    key = crew.yard.submit(["true"])
    crew.yard.loses_answer = "settled"
    crew.drive(crew.agent(), lambda: key in crew.yard.ended and not crew.directory(key).exists(), "its removal")


def test_what_was_given_up_before_its_end_was_heard_stays(crew: Crew) -> None:
    key = crew.yard.submit(["true"])
    crew.yard.settles = False
    crew.drive(crew.agent(), lambda: _is_told(crew, key), "its report")
    crew.yard.settles = True
    crew.yard.give_up(key)
    later, second = crew.yard.submit(["true"]), crew.agent()
    crew.drive(
        second, lambda: later in crew.yard.ended and not crew.directory(later).exists(), "the next one's removal"
    )
    assert (crew.directory(key) / "spec.json").exists()


def _is_told(crew: Crew, key: Any) -> bool:
    return any(report.key == key and report.record for report in crew.yard.reports)
