"""How long to wait after something was tried in vain."""

from __future__ import annotations

import pytest

from runyard.yard import backoff


@pytest.mark.parametrize(("tries", "pause"), [(0, 2), (1, 4), (5, 64), (11, 3600), (1000, 3600), (100_000, 3600)])
def test_pauses_double_up_to_the_longest(tries: int, pause: float) -> None:
    assert backoff.after(tries, 3600) == pause
