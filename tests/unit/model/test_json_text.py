from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard import errors
from runyard.model import json_text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_json_comes_out_as_it_went_in(value: dict[str, Any]) -> None:
    assert json_text.parse_object(json.dumps(value).encode()) == value


@given(st.binary(max_size=50))
def test_any_bytes_are_understood_or_refused(data: bytes) -> None:
    try:
        assert isinstance(json_text.parse_object(data), dict)
    except errors.InvalidInput as error:
        assert error.message


def test_a_mark_of_utf_8_at_the_beginning_is_no_part_of_it() -> None:
    assert json_text.parse_object(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


def test_a_number_of_thousands_of_digits() -> None:
    with pytest.raises(errors.InvalidInput, match=r"^the body has a number of too many digits$"):
        json_text.parse(b"1" * 5000)


@pytest.mark.parametrize("levels", [64, 65])
def test_depth(levels: int) -> None:
    data = b'{"a":' * (levels - 1) + b"{}" + b"}" * (levels - 1)
    if levels <= json_text.DEEPEST:
        json_text.parse_object(data)
    else:
        with pytest.raises(errors.InvalidInput, match="too deeply"):
            json_text.parse_object(data)


def test_many_shallow_objects_are_fine() -> None:
    assert len(json_text.parse_object(json.dumps({"runs": [{"command": ["true"]}] * 1000}).encode())["runs"]) == 1000
