"""A yard that restarts is waited for."""

from __future__ import annotations

import time

import pytest

from runyard import errors
from runyard.client.retries import Patience

AWAY = errors.YardUnreachable("it is away")


def test_it_counts_from_the_first_failure_however_long_all_went_well() -> None:
    patience = Patience(seconds=0.3)
    patience.met()
    time.sleep(0.4)
    patience.endure(AWAY)


def test_it_ends() -> None:
    patience = Patience(seconds=0.3)
    patience.met()
    with pytest.raises(errors.YardUnreachable):
        while True:
            patience.endure(AWAY)


def test_there_is_none_for_a_yard_that_never_answered() -> None:
    with pytest.raises(errors.YardUnreachable):
        Patience().endure(AWAY)


def test_a_yard_that_waits_for_its_store_has_answered() -> None:
    Patience(seconds=0.3).endure(errors.StoreError())
