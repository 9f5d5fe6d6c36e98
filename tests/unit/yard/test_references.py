"""Very many digests in little memory."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.yard.checkpoints import references
from runyard.yard.checkpoints.references import Prefixes


def digest(number: int) -> str:
    return f"sha256:{hashlib.sha256(b'%d' % number).hexdigest()}"


@given(st.lists(st.lists(st.integers(0, 100)), max_size=5))
def test_what_was_added_is_there_and_nothing_else(added: list[list[int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(references, "FRESH_PREFIXES", 7)
        known = Prefixes()
        for numbers in added:
            known.add(digest(number) for number in numbers)
    found = {number for number in range(101) if digest(number) in known}
    assert found == {number for numbers in added for number in numbers}
    assert digest(5).removeprefix("sha256:") in Prefixes([digest(5)]), "however it is written"
