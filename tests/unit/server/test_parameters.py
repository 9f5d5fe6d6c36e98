from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard import errors
from runyard.server.parameters import Parameter, header, parse_all, path, query

NUMBER = query("n", {"type": "integer", "minimum": 1, "maximum": 9, "default": 5}, "")
WORDS = query("word", {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, "")
FLAG = query("flag", {"type": "boolean", "default": False}, "")
SECONDS = query("seconds", {"type": "number", "minimum": 0, "maximum": 10}, "")
NEEDED = query("needed", {"type": "string", "maxLength": 3}, "", required=True)


def parse(parameter: Parameter, text: str) -> Any:
    return parse_all([parameter], {}, text.encode())[parameter.name]


@pytest.mark.parametrize(
    ("parameter", "text", "value"),
    [
        (NUMBER, "", 5),
        (NUMBER, "n=", 5),
        (NUMBER, "n=9", 9),
        (WORDS, "", []),
        (WORDS, "word=a&word=b", ["a", "b"]),
        (WORDS, "word=a,b,,a", ["a", "b", "a"]),
        (FLAG, "flag=1", True),
        (FLAG, "flag=TRUE", True),
        (FLAG, "flag=0", False),
        (SECONDS, "seconds=0.25", 0.25),
        (SECONDS, "", None),
        (NEEDED, "needed=%C3%BC", "ü"),
    ],
)
def test_good_values(parameter: Parameter, text: str, value: object) -> None:
    assert parse(parameter, text) == value


@pytest.mark.parametrize(
    ("parameter", "text", "message"),
    [
        (NUMBER, "n=0", "n: 0 is not between 1 and 9"),
        (NUMBER, "n=1.0", "not a whole number"),
        (NUMBER, "n=%D9%A3", "not a whole number"),
        (NUMBER, "n=" + "9" * 100, "not a whole number"),
        (NUMBER, "n=1&n=2", "given 2 times"),
        (WORDS, "word=c", "'c' is not known"),
        (FLAG, "flag=yes", "'yes' is not known"),
        (SECONDS, "seconds=nan", "not a number"),
        (SECONDS, "seconds=1e3", "not a number"),
        (SECONDS, "seconds=11", "not between 0 and 10"),
        (NEEDED, "", "needed: missing"),
        (NEEDED, "needed=long", "longer than 3"),
        (NEEDED, "needed=%00", "zero byte"),
        (NUMBER, "m=1", "unknown parameter 'm'"),
    ],
)
def test_bad_values(parameter: Parameter, text: str, message: str) -> None:
    with pytest.raises(errors.InvalidInput, match=message):
        parse(parameter, text)


def test_path_values_and_patterns() -> None:
    digest = path("digest", {"type": "string", "pattern": "^x[0-9]+$"}, "")
    assert parse_all([digest, header("Range", "")], {"digest": "x12"}, b"") == {"digest": "x12"}
    with pytest.raises(errors.InvalidInput, match="does not look like"):
        parse_all([digest], {"digest": "x12\n"}, b"")


def test_a_path_value_cannot_be_given_in_the_query() -> None:
    with pytest.raises(errors.InvalidInput, match="unknown parameter 'id'"):
        parse_all([path("id", {"type": "integer"}, "")], {"id": "1"}, b"id=2")


@given(st.binary(max_size=60))
def test_any_query_is_understood_or_refused(text: bytes) -> None:
    try:
        values = parse_all([NUMBER, WORDS, FLAG, SECONDS], {}, text)
    except errors.InvalidInput:
        return
    assert values.keys() == {"n", "word", "flag", "seconds"}
