from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard import errors
from runyard.model import text_delta
from runyard.model.tree import Tree, TreeFile


def description(**sizes: int) -> bytes:
    files = (TreeFile(path, f"sha256:{size:064x}", size, False) for path, size in sizes.items())
    return Tree.build(files).encode()


def test_one_changed_file_among_many_is_told_shortly() -> None:
    sizes = {f"file{number:04d}": number for number in range(2000)}
    base, text = description(**sizes), description(**{**sizes, "file0700": 5_000_000})
    pieces = text_delta.compare(base, text)
    assert text_delta.apply(base, pieces) == text
    assert len(json.dumps(pieces)) < 300


@given(
    st.dictionaries(st.text("abcé", min_size=1), st.integers(0, 9)),
    st.dictionaries(st.text("abcé", min_size=1), st.integers(0, 9)),
)
def test_any_folder_from_any_other(before: dict[str, int], after: dict[str, int]) -> None:
    base, text = description(**before), description(**after)
    assert text_delta.apply(base, json.loads(json.dumps(text_delta.compare(base, text)))) == text


@given(st.text("],[ab"), st.text("],[ab"))
def test_any_text_from_any_other(base: str, text: str) -> None:
    assert text_delta.apply(base.encode(), text_delta.compare(base.encode(), text.encode())) == text.encode()


@pytest.mark.parametrize(
    ("pieces", "sentence"),
    [
        (None, "must be a list"),
        ([[0, 4]], "0 to 4 is no range"),
        ([[2, 1]], "2 to 1 is no range"),
        ([[-1, 1]], "-1 to 1 is no range"),
        ([[0]], "two whole numbers"),
        ([[0, True]], "two whole numbers"),
        ([3], "two whole numbers"),
        ([[0, 3]] * (text_delta.MOST_PIECES + 1), "pieces"),
        (["x" * (8 << 20), "y"], "more than"),
    ],
)
def test_what_is_no_edit(pieces: object, sentence: str) -> None:
    with pytest.raises(errors.InvalidInput, match=sentence):
        text_delta.apply(b"abc", pieces)
