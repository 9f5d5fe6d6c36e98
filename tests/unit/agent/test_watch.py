"""The table of evidence, every row of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest

from runyard.agent.attempts import Attempt, Book
from runyard.agent.errands import InlineErrands
from runyard.agent.run.watch import POLL_S, QUIET_S, Verdict, Watch, judge
from runyard.backends.base import Presence
from runyard.hosts.base import KnownFiles, Seen
from runyard.hosts.local import LocalHost
from tests.unit.agent.test_log import attempt

ABSENT, PENDING, ALIVE, GONE, UNKNOWN = Presence


@pytest.mark.parametrize(
    ("started", "recorded", "presence", "verdict"),
    [
        (False, False, ABSENT, Verdict.NOT_STARTED),
        (False, False, PENDING, Verdict.PENDING),
        (False, False, UNKNOWN, Verdict.PENDING),
        (False, False, GONE, Verdict.OVER),
        (True, False, ALIVE, Verdict.RUNNING),
        (True, False, GONE, Verdict.OVER),
        (True, False, UNKNOWN, Verdict.DOUBTFUL),
        (True, False, ABSENT, Verdict.DOUBTFUL),
        (True, True, UNKNOWN, Verdict.OVER),
    ],
)
def test_the_table(started: bool, recorded: bool, presence: Presence, verdict: Verdict) -> None:
    assert judge(started=started, recorded=recorded, presence=presence) is verdict


def test_a_record_is_the_last_word() -> None:
    for started, presence, ran in itertools.product((False, True), Presence, (False, True)):
        assert judge(started=started, recorded=True, presence=presence, was_running=ran) is Verdict.OVER


def test_doubt_never_ends_or_starts_anything() -> None:
    for started, ran in itertools.product((False, True), repeat=2):
        verdict = judge(started=started, recorded=False, presence=UNKNOWN, was_running=ran)
        assert verdict in (Verdict.PENDING, Verdict.DOUBTFUL)


def test_what_ran_once_is_never_started_again() -> None:
    for started, recorded, presence in itertools.product((False, True), (False, True), Presence):
        verdict = judge(started=started, recorded=recorded, presence=presence, was_running=True)
        assert verdict is not Verdict.NOT_STARTED
    assert judge(started=False, recorded=False, presence=ABSENT, was_running=True) is Verdict.OVER


class SlowHost(LocalHost):
    """Each directory takes it a millisecond."""

    def __init__(self) -> None:
        self.now = 100.0

    def scan(self, root: str, known: Iterable[KnownFiles]) -> list[Seen]:
        asked = list(known)
        self.now += 0.001 * len(asked)
        return super().scan(root, asked)


@pytest.mark.parametrize(("count", "pause_s"), [(1, QUIET_S), (50, 0.5), (400, POLL_S)])
def test_the_longer_a_look_takes_the_rarer_it_is(count: int, pause_s: float, tmp_path: Path) -> None:
    host = SlowHost()
    watch = Watch(SimpleNamespace(host=host), str(tmp_path), InlineErrands(), Book(), lambda: host.now)  # type: ignore[arg-type]
    attempts: list[Attempt] = [attempt(run) for run in range(1, count + 1)]
    watch.scan(attempts, with_bytes=False)
    assert [one.evidence.look_at for one in attempts] == [pytest.approx(100 + pause_s)] * count
