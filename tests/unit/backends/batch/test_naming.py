"""(batch, index) ↔ (native name, task), for every size of array."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.backends.batch import naming
from runyard.backends.batch.naming import ArrayPiece

INDEXES = st.sets(st.integers(1, 5000), min_size=1, max_size=60)


@given(indexes=INDEXES, size=st.sampled_from([1, 2, 7, 1000, 75000]), gaps=st.booleans())
def test_every_job_has_one_native_identity_and_is_found_again(indexes: set[int], size: int, gaps: bool) -> None:
    pieces = naming.pieces(indexes, size, gaps=gaps)
    found = [
        naming.identity(naming.native_name("ry-1-1-7", piece.offset), task) for piece in pieces for task in piece.tasks
    ]
    assert sorted(found) == [("ry-1-1-7", index) for index in sorted(indexes)]
    assert all(1 <= task <= size for piece in pieces for task in piece.tasks)


@given(indexes=INDEXES)
def test_without_gaps_every_piece_is_a_range(indexes: set[int]) -> None:
    for piece in naming.pieces(indexes, 1000, gaps=False):
        assert list(piece.tasks) == list(range(piece.tasks[0], piece.tasks[-1] + 1))


@pytest.mark.parametrize(
    ("indexes", "size", "gaps", "pieces"),
    [
        ([1], 1000, True, [(0, (1,))]),
        ([17], 1000, True, [(0, (17,))]),
        ([1, 2, 3], 1000, True, [(0, (1, 2, 3))]),
        ([1, 3], 1000, True, [(0, (1, 3))]),
        ([1, 3], 1000, False, [(0, (1,)), (0, (3,))]),
        ([1000, 1001, 1002], 1000, True, [(0, (1000,)), (1000, (1, 2))]),
        ([1, 2], 1, True, [(0, (1,)), (1, (1,))]),
    ],
)
def test_pieces(indexes: list[int], size: int, gaps: bool, pieces: list[tuple[int, tuple[int, ...]]]) -> None:
    found = naming.pieces(indexes, size, gaps=gaps)
    assert [(piece.offset, piece.tasks) for piece in found] == pieces


def test_a_piece_is_split_for_the_room_there_is() -> None:
    piece = ArrayPiece(offset=1000, tasks=(1, 2, 5))
    assert piece.indexes == [1001, 1002, 1005]
    assert piece.split(2) == (ArrayPiece(offset=1000, tasks=(1, 2)), ArrayPiece(offset=1000, tasks=(5,)))
    assert piece.split(9) == (piece, None)


@pytest.mark.parametrize("name", ["train", "my.output", "x.o", "sleep.o12x", "ry-9-9-9"])
def test_names_of_others_are_nobodys(name: str) -> None:
    assert naming.identity(name, 1)[0] != "ry-1-1-7"
