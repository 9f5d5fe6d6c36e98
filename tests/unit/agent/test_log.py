"""Bytes by offset, whatever the other side says."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from runyard import errors
from runyard.agent.attempts import Attempt, Book, Phase
from runyard.agent.errands import InlineErrands
from runyard.agent.report import log as relaying
from runyard.agent.report.ending import end_report
from runyard.agent.report.log import FileChunk, Relay, missing
from runyard.agent.run.watch import Watch
from runyard.agent.slices import EvidenceSlice, LifeSlice, OverSlice
from runyard.backends.base import Job, Presence, Sighting
from runyard.hosts.base import CHUNK, Seen
from runyard.hosts.local import LocalHost
from runyard.model.resources import Resources
from runyard.model.wire import AttemptKey, Claim


def attempt(run: int = 1, **fields: object) -> Attempt:
    key = AttemptKey(run=run, attempt=1)
    claim = Claim(key=key, batch="b", position=1, spec={"command": ["true"]}, argv=["true"], resources=Resources())
    job = Job(key=key, directory=f"/none/{run}/a1", tag="", batch="b", index=1)
    made = Attempt(claim=claim, job=job, life=LifeSlice(phase=Phase.STARTED), **fields)  # type: ignore[arg-type]
    made.relay.offsets = dict.fromkeys(("log", "metrics.jsonl", "usage.jsonl"), 0)
    return made


def seen(one: Attempt, data: bytes) -> dict[str, Seen]:
    return {one.place: Seen(directory=one.place, started=True, data={"log": data})}


class Bench:
    def __init__(self) -> None:
        self.now = 100.0
        self.errands = InlineErrands()
        self.book = Book()
        backend = SimpleNamespace(host=LocalHost())
        watch = Watch(backend, "/none", self.errands, self.book, lambda: self.now)  # type: ignore[arg-type]
        self.relay = Relay(self.errands, self.book, watch, self, lambda: self.now)
        self.again: list[Attempt] = []
        self.sent: list[tuple[str, int, bytes]] = []
        self.failures: list[Exception] = []
        self.answer: int | Exception | None = None  # None: as a yard that agrees

    def append(self, piece: FileChunk) -> int:
        self.sent.append((piece.file, piece.offset, piece.data))
        if isinstance(self.answer, Exception):
            raise self.answer
        return piece.offset + len(piece.data) if self.answer is None else self.answer

    def report_again(self, attempt: Attempt) -> None:
        self.again.append(attempt)

    def trouble(self, error: Exception) -> None:
        self.failures.append(error)

    def go(self, *attempts: Attempt, data: bytes = b"") -> None:
        found = {place: one for each in attempts for place, one in seen(each, data).items()} if data else {}
        self.relay.relay(attempts, found)
        self.errands.collect()


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_yards_answer_is_where_to_go_on(bench: Bench) -> None:
    one = attempt(evidence=EvidenceSlice(look_at=200.0))
    bench.go(one, data=b"abc")
    assert (bench.sent, one.offsets["log"], one.evidence.look_at) == ([("log", 0, b"abc")], 3, 200.0)


def test_an_answer_that_differs_is_believed_and_followed_at_once(bench: Bench) -> None:
    one = attempt(evidence=EvidenceSlice(look_at=200.0))
    bench.answer = 1
    bench.go(one, data=b"abc")
    assert (one.offsets["log"], one.evidence.look_at) == (1, bench.now)


def test_a_full_piece_means_that_there_is_more(bench: Bench) -> None:
    one = attempt(evidence=EvidenceSlice(look_at=200.0))
    bench.go(one, data=b"x" * CHUNK)
    assert one.evidence.look_at == bench.now


def test_what_only_the_yard_knows_is_asked_once(bench: Bench) -> None:
    one = attempt()
    bench.relay.expect_something_held(one)
    bench.answer = 7
    bench.go(one)
    assert bench.sent == [(name, 0, b"") for name in ("log", "metrics.jsonl", "usage.jsonl")]
    assert set(one.offsets.values()) == {7}
    bench.go(one)
    assert len(bench.sent) == 3


def test_a_yard_that_cannot_write_is_given_a_pause(bench: Bench) -> None:
    one = attempt()
    bench.answer = errors.YardUnreachable()
    bench.go(one, data=b"abc")
    assert (len(bench.failures), one.offsets["log"], one.is_relaying) == (1, 0, False)
    bench.go(one, data=b"abc")
    assert len(bench.sent) == 1
    bench.now += relaying.PAUSE_S
    bench.answer = None
    bench.go(one, data=b"abc")
    assert one.offsets["log"] == 3


def test_one_that_is_not_ours_any_more_does_not_hold_up_the_others(bench: Bench) -> None:
    one, other = attempt(1), attempt(2)
    bench.answer = errors.Stale()
    bench.go(one, data=b"abc")
    assert (one.disowned, bench.again, bench.failures) == (True, [one], [])
    bench.answer = None
    bench.go(one, other, data=b"abc")
    assert (one.offsets["log"], other.offsets["log"]) == (0, 3)


def test_nothing_is_missing_when_the_lengths_of_the_record_are_held() -> None:
    one = attempt(evidence=EvidenceSlice(status={"state": "ended", "ending": "exit", "sizes": {"log": 5, "stdout": 9}}))
    one.offsets["log"] = 3
    assert missing(one) == "log: 3 of 5 bytes"
    one.offsets["log"] = 5
    assert missing(one) == ""


def test_without_a_record_everything_must_have_been_read() -> None:
    one = attempt()
    assert missing(one)
    one.evidence.drained = True
    assert missing(one) == ""


def test_a_backends_word_counts_where_no_runner_left_a_record() -> None:
    word = Sighting(presence=Presence.GONE, text="node down", ending="node_lost", node="n7")
    one = attempt(evidence=EvidenceSlice(sighting=word), over=OverSlice(gone="node down"))
    report = end_report(one, "here")
    assert report.record is not None
    assert (report.record["ending"], report.record["message"], report.node) == ("node_lost", "node down", "n7")
    one.evidence.status = {"state": "ended", "ending": "exit", "exit_code": 0}
    assert end_report(one, "here").record == one.status
