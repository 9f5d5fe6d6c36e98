"""Permits are renewed in time, all at once, and never for longer than the yard has heard of us."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from runyard.agent.attempts import SUPERSEDED, Attempt, Book, Phase
from runyard.agent.run.permits import PAUSE_S, Permits
from runyard.agent.slices import LifeSlice
from runyard.backends.base import Job
from runyard.backends.local import LocalBackend
from runyard.model.resources import Resources
from runyard.model.wire import AttemptKey, Claim
from runyard.runner import kernel


class CountingBackend(LocalBackend):
    """It notes how often it was asked, and may be out of reach."""

    renewals = 0
    reachable = True

    def renew(self, jobs: Sequence[Job], heard_at: float) -> bool:
        self.renewals += 1
        return self.reachable and super().renew(jobs, heard_at)


class Desk:
    def __init__(self, directory: Path) -> None:
        self.backend, self.book, self.now = CountingBackend(directory), Book(), 0.0
        self.directory, self.heard_at = directory, kernel.uptime()
        self.permits = Permits(self.backend, self.book, lambda: self.heard_at, lambda: self.now)

    def add(self, run: int, permit: float | None = 100, phase: Phase = Phase.STARTED) -> Attempt:
        key, place = AttemptKey(run=run, attempt=1), self.directory / str(run)
        place.mkdir()
        claim = Claim(key=key, batch="b", position=1, spec={}, argv=["true"], resources=Resources(), permit=permit)
        job = Job(key=key, directory=str(place), tag="", batch="b", index=1, permit=permit)
        self.book.add(Attempt(claim=claim, job=job, life=LifeSlice(phase=phase)))
        found = self.book.get(key)
        assert found is not None
        return found

    def until(self, attempt: Attempt) -> float | None:
        """Seconds from `heard_at`."""
        try:
            control: dict[str, Any] = json.loads(Path(attempt.job.directory, "control.json").read_text())
        except FileNotFoundError:
            return None
        return round(float(control["permit"]["until"]) - self.heard_at, 3)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_all_are_renewed_together_when_one_is_due(desk: Desk) -> None:
    first, second = desk.add(1), desk.add(2, permit=200)
    desk.permits.advance()
    assert (desk.until(first), desk.until(second), desk.backend.renewals) == (100, 200, 1)
    desk.heard_at += 24
    desk.permits.advance()
    assert desk.backend.renewals == 1, "it is not due yet"
    desk.heard_at += 1
    desk.permits.advance()
    assert (desk.until(first), desk.until(second), desk.backend.renewals) == (100, 200, 2)


def test_while_the_yard_does_not_answer_nothing_is_renewed(desk: Desk) -> None:
    attempt = desk.add(1)
    desk.permits.advance()
    desk.now += 10_000
    desk.permits.advance()
    assert (desk.until(attempt), desk.backend.renewals) == (100, 1)


def test_only_what_runs_by_a_permit_is_renewed(desk: Desk) -> None:
    free, waits, over, given_up = desk.add(1, permit=None), desk.add(2, phase=Phase.READY), desk.add(3), desk.add(4)
    over.over.record = {"state": "ended", "ending": "lost"}
    given_up.stopping.reason = SUPERSEDED
    desk.permits.advance()
    assert desk.backend.renewals == 0
    assert {desk.until(attempt) for attempt in (free, waits, over, given_up)} == {None}


def test_a_node_that_does_not_answer_is_asked_again_after_a_pause(desk: Desk) -> None:
    attempt = desk.add(1)
    desk.backend.reachable = False
    desk.permits.advance()
    desk.permits.advance()
    assert desk.backend.renewals == 1
    desk.backend.reachable = True
    desk.now += PAUSE_S
    desk.permits.advance()
    assert (desk.until(attempt), desk.backend.renewals) == (100, 2)


def test_nothing_is_started_with_a_permit_that_is_over_soon(desk: Desk) -> None:
    attempt, free = desk.add(1, phase=Phase.READY), desk.add(2, permit=None, phase=Phase.READY)
    assert desk.permits.may_start(attempt)
    desk.heard_at -= 51
    assert not desk.permits.may_start(attempt)
    assert desk.permits.may_start(free)
