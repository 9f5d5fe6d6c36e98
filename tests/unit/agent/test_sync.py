"""When an agent speaks, and when it keeps quiet."""

from __future__ import annotations

from typing import Any

import pytest

from runyard.agent import sync as talking
from runyard.agent.attempts import Attempt, Book, Phase
from runyard.agent.errands import InlineErrands
from runyard.agent.report.ending import end_report
from runyard.agent.run.pace import Pace
from runyard.agent.run.slots import Slots
from runyard.agent.slices import BringingSlice, EvidenceSlice, LifeSlice, StartSlice
from runyard.agent.sync import Sync, SyncListener
from runyard.backends.base import Distant, Job, Presence, Sighting
from runyard.model.resources import Capacity
from runyard.model.states import AttemptState
from runyard.model.wire import Claim, Hello, SyncResponse
from tests.integration.agent.fake_yard import FakeYard

TOTAL = Capacity(cpus=2, memory=100)


class Node(Distant):
    """A machine that may be away."""

    def __init__(self) -> None:
        self.why = ""

    def trouble(self) -> str:
        return self.why


class Stage:
    """A talk with everything around it in the test's hand: the clock, the yard, the attempts, the node."""

    def __init__(self) -> None:
        self.now, self.no_claims_until = 1000.0, 0.0
        self.node = Node()
        self.yard, self.errands, self.book = FakeYard(), InlineErrands(), Book()
        self.slots, self.pace = Slots(TOTAL), Pace()
        self.heard: list[SyncResponse] = []
        self.owned: list[list[Claim]] = []
        hello = Hello(site="local", agent="a", node="n", boot_id="b", version="1", total=TOTAL)
        listener = SyncListener(owned=self.owned.append, answered=self.heard.append)
        self.talk = Sync(
            self.yard, self.errands, hello, self.book, self.slots, self.pace, listener, lambda: self.now,
            distant=self.node, no_claims_until=lambda: self.no_claims_until,
        )  # fmt: skip

    def speak(self, after: float = 0.0) -> int:
        """How many syncs the yard has heard after a pass at that time."""
        self.now += after
        self.talk.advance()
        self.errands.collect()
        return len(self.yard.requests)

    def attempt(self, phase: Phase, **fields: Any) -> Attempt:
        key = self.yard.submit(["true"])
        claim = self.yard.queue.pop()
        self.yard.owned[key] = claim
        job = Job(key=key, directory="/none", tag="", batch="b", index=1)
        made = Attempt(claim=claim, job=job, life=LifeSlice(phase=phase), **fields)
        self.book.add(made)
        return made

    def end(self, attempt: Attempt) -> None:
        attempt.over.record = {"state": "ended", "ending": "exit", "exit_code": 0, "signal": None}
        attempt.ending.report = end_report(attempt, "n")
        self.book.move(attempt, Phase.TOLD)


@pytest.fixture
def stage() -> Stage:
    made = Stage()
    made.speak()
    made.speak(1.0)
    assert (made.talk.incarnation, len(made.yard.requests)) == (1, 1)
    return made


def test_nothing_is_said_without_a_reason_but_to_renew_the_lease(stage: Stage) -> None:
    assert stage.speak(talking.RENEWAL_S - 0.1) == 1
    assert stage.speak(0.2) == 2


def test_the_next_word_is_known_ahead(stage: Stage) -> None:
    assert stage.talk.next_due() == stage.now + talking.RENEWAL_S


def test_news_are_followed_at_once(stage: Stage) -> None:
    stage.talk.hear_news()
    assert stage.speak(talking.IDLE_GAP_S) == 2
    assert stage.speak(1.0) == 2


def test_news_are_gathered_while_there_is_enough_to_do(stage: Stage) -> None:
    stage.attempt(Phase.READY)
    stage.talk.hear_news()
    assert stage.speak(1.0) == 2
    stage.talk.hear_news()
    assert stage.speak(talking.BUSY_GAP_S / 2) == 2
    assert stage.speak(talking.BUSY_GAP_S / 2 + 0.001) == 3


def test_a_start_is_reported_of_a_run_that_lives_and_has_no_room_for_its_status(stage: Stage) -> None:
    alive = Sighting(presence=Presence.ALIVE)
    attempt = stage.attempt(
        Phase.STARTED,
        start=StartSlice(submitted_at=stage.now),
        evidence=EvidenceSlice(made_started=True, sighting=alive),
    )
    assert stage.speak(talking.WORDLESS_S - 0.1) == 1
    assert stage.speak(0.2) == 2
    assert [report.state for report in stage.yard.requests[-1].reports] == [AttemptState.RUNNING]
    assert attempt.told.running


def test_an_end_is_reported_at_once_and_all_ends_together(stage: Stage) -> None:
    ended = [stage.attempt(Phase.STARTED) for _ in range(3)]
    for attempt in ended:
        stage.end(attempt)
    assert stage.speak(talking.IDLE_GAP_S) == 2
    assert {report.key for report in stage.yard.requests[-1].reports} == {attempt.key for attempt in ended}


def test_an_end_that_is_not_settled_is_repeated_without_haste(stage: Stage) -> None:
    stage.yard.settles = False
    stage.end(stage.attempt(Phase.STARTED))
    assert stage.speak(0.1) == 2
    assert stage.speak(0.1) == 2
    assert stage.speak(talking.REPEAT_S) == 3


def test_a_start_lingers_so_that_short_runs_are_reported_once(stage: Stage) -> None:
    attempt = stage.attempt(
        Phase.STARTED,
        start=StartSlice(submitted_at=stage.now),
        evidence=EvidenceSlice(status={"state": "running", "started_at": 5.0}),
    )
    assert stage.speak(talking.LINGER_S / 2) == 1
    assert stage.speak(talking.LINGER_S) == 2
    assert attempt.told.running
    assert stage.speak(1.0) == 2


def test_more_work_is_fetched_when_slots_are_free(stage: Stage) -> None:
    for _ in range(5):
        stage.yard.submit(["true"])
    stage.talk.hear_news()
    stage.speak(1.0)
    assert len(stage.heard[-1].claims) == 2
    assert stage.speak(0.1) == 3, "the yard said that more is waiting, and nothing was started here yet"


def test_work_that_never_fits_is_not_asked_for_again_and_again(stage: Stage) -> None:
    stage.yard.submit(["true"], resources={"cpus": 64})
    stage.talk.hear_news()
    assert stage.speak(1.0) == 2
    assert stage.heard[-1].more
    assert stage.speak(1.0) == 2


def test_short_runs_make_it_ask_ahead_while_they_end(stage: Stage) -> None:
    stage.pace.ended(0.01)
    stage.end(stage.attempt(Phase.STARTED))
    stage.talk.hear_news()
    stage.speak(1.0)
    assert stage.yard.requests[-1].ahead == 50


def test_short_runs_of_before_say_nothing_of_those_that_wait_now(stage: Stage) -> None:
    stage.pace.ended(0.01)
    stage.talk.hear_news()
    stage.speak(1.0)
    assert stage.yard.requests[-1].ahead == 0


def test_a_pause_takes_nothing(stage: Stage) -> None:
    stage.yard.submit(["true"])
    stage.pace.ended(0.01)
    stage.end(stage.attempt(Phase.STARTED))
    stage.no_claims_until = stage.now + 30
    stage.talk.hear_news()
    stage.speak(1.0)
    assert (stage.yard.requests[-1].free.cpus, stage.yard.requests[-1].ahead) == (0, 0)
    stage.speak(30)
    assert stage.yard.requests[-1].free.cpus == 2


def test_a_yard_that_is_away_is_asked_less_and_less_and_greeted_again(stage: Stage) -> None:
    stage.yard.reachable = False
    stage.talk.hear_news()
    stage.speak(1.0)
    waits = []
    for _ in range(8):
        assert stage.talk.incarnation is None
        waits.append(stage.talk.next_due() - stage.now)
        stage.now = stage.talk.next_due()
        stage.speak()
    assert waits[:3] == [talking.FIRST_PAUSE_S, talking.FIRST_PAUSE_S * 2, talking.FIRST_PAUSE_S * 4]
    assert waits[-1] == talking.LONGEST_PAUSE_S
    stage.yard.reachable = True
    stage.speak(talking.LONGEST_PAUSE_S)
    assert stage.talk.incarnation == 2
    assert stage.speak(0.1) == 2, "stop orders and work come with the sync that follows"


def test_an_old_incarnation_falls_silent(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.yard.incarnation += 1
    stage.talk.hear_news()
    stage.speak(1.0)
    assert stage.talk.stale
    assert "this agent stops" in caplog.text
    assert stage.speak(100.0) == 1
    assert stage.talk.next_due() == float("inf")


def test_a_node_that_does_not_answer_is_told_at_once_and_takes_nothing(stage: Stage) -> None:
    stage.yard.submit(["true"])
    stage.pace.ended(0.01)
    stage.end(stage.attempt(Phase.STARTED))
    stage.node.why = "hoff does not answer"
    assert stage.speak(talking.IDLE_GAP_S) == 2
    told = stage.yard.requests[-1]
    assert (told.away, told.free.cpus, told.ahead) == ("hoff does not answer", 0, 0)
    stage.node.why = ""
    assert stage.speak(talking.IDLE_GAP_S) == 3
    assert (stage.yard.requests[-1].away, stage.yard.requests[-1].free.cpus) == ("", 2)


def test_an_agent_does_not_say_hello_for_a_node_that_does_not_answer(stage: Stage) -> None:
    stage.node.why = "hoff does not answer"
    stage.talk.begin_again(0.0)
    stage.speak(100.0)
    assert stage.talk.incarnation is None
    stage.node.why = ""
    stage.speak()
    assert stage.talk.incarnation == 2


def test_slots_are_offered_to_others_while_files_travel_for_long(stage: Stage) -> None:
    stage.attempt(Phase.RECEIVED, bringing=BringingSlice(under_way=True, since=stage.now))
    stage.talk.hear_news()
    stage.speak(after=1)
    assert stage.yard.requests[-1].free.cpus == 1
    stage.speak(after=20)
    assert stage.yard.requests[-1].free.cpus == 2
