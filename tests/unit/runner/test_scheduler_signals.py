"""What a signal from a scheduler means."""

from __future__ import annotations

import signal

import pytest

from runyard.runner import scheduler_signals


@pytest.mark.parametrize("table", [None, scheduler_signals.SLURM, scheduler_signals.GRID_ENGINE])
@pytest.mark.parametrize("number", [0, signal.SIGRTMIN + 1, 64])
def test_a_number_without_a_name_means_nothing(table: scheduler_signals.Table | None, number: int) -> None:
    """A wait that a SIGSTOP interrupted ends without a signal."""
    assert scheduler_signals.meaning(table, number) == scheduler_signals.OTHER
    assert not scheduler_signals.reached_all(table, number)


@pytest.mark.parametrize("table", [None, scheduler_signals.SLURM, scheduler_signals.GRID_ENGINE])
def test_sigterm_is_always_the_end(table: scheduler_signals.Table | None) -> None:
    assert scheduler_signals.meaning(table, signal.SIGTERM) == scheduler_signals.END
