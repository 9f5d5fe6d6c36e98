"""Many files in one body, however it is cut into pieces on its way."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard import errors
from runyard.model import packs

DIGEST = "sha256:" + "ab" * 32


def named(data: bytes) -> tuple[str, bytes]:
    return f"sha256:{hashlib.sha256(data).hexdigest()}", data


@given(st.lists(st.binary(max_size=200), max_size=10), st.integers(1, 300))
def test_what_was_packed_comes_out_however_it_arrives(files: list[bytes], step: int) -> None:
    body = packs.pack(map(named, files))
    pieces = [body[start : start + step] for start in range(0, len(body), step)]
    assert list(packs.unpack(pieces)) == [named(data) for data in files]


@given(st.binary(min_size=1, max_size=100), st.data())
def test_a_pack_that_ends_early_is_refused(data: bytes, draw: st.DataObject) -> None:
    body = packs.pack([named(data)])
    cut = draw.draw(st.integers(1, len(body) - 1))
    with pytest.raises(errors.InvalidInput, match="ends in the middle"):
        list(packs.unpack([body[:cut]]))


def test_the_format_on_the_wire() -> None:
    assert packs.pack([(DIGEST, b"xyz")]) == bytes.fromhex("ab" * 32) + b"\0\0\0\0\0\0\0\x03" + b"xyz"


def test_a_length_that_nobody_should_hold_in_memory_is_refused_at_once() -> None:
    with pytest.raises(errors.InvalidInput, match="contains a file of 8388609 bytes"):
        list(packs.unpack([packs.header(DIGEST, packs.LARGE + 1)]))


def test_bytes_of_another_digest() -> None:
    packs.check_bytes(*named(b"x"))
    with pytest.raises(errors.InvalidInput, match="have the digest"):
        packs.check_bytes(DIGEST, b"x")
