from __future__ import annotations

from runyard.agent.run.pace import MOST_AHEAD, Pace


def test_nothing_is_taken_ahead_while_nothing_is_known() -> None:
    assert Pace().ahead() == 0


def test_short_runs_are_taken_ahead_for_about_half_a_second() -> None:
    pace = Pace()
    pace.started(2)
    for _ in range(20):
        pace.ended(0.1)
    assert pace.ahead() == 10


def test_very_short_runs_are_bounded() -> None:
    pace = Pace()
    pace.ended(0.0)
    assert pace.ahead() == MOST_AHEAD


def test_long_runs_end_it() -> None:
    pace = Pace()
    pace.ended(0.01)
    for _ in range(20):
        pace.ended(60)
    assert pace.ahead() == 0
