from __future__ import annotations

from typing import Any

import pytest

from runyard import errors
from runyard.server.check import check
from runyard.server.schemas.build import integer, listed, one_of, or_null, record, ref, text

SHAPE = record(
    {
        "name": text(minLength=1, maxLength=3),
        "count": integer("", 0, 9),
        "kind": one_of(["a", "b"]),
        "maybe": or_null(integer("", 0, 9)),
        "choice": or_null(one_of(["a", "b"])),
        "items": listed(integer(), minItems=1, maxItems=2),
        "place": ref("Capacity"),
        "code": text(pattern="^x[0-9]$"),
    },
    required=["name"],
)


@pytest.mark.parametrize(
    "more",
    [
        {}, {"count": 9}, {"kind": "b"}, {"maybe": None}, {"maybe": 3}, {"choice": None}, {"choice": "a"},
        {"items": [1, 2]}, {"place": {"cpus": 1, "memory": 2, "gpus": [{"uuid": "GPU-1"}]}}, {"code": "x1"},
    ],
)  # fmt: skip
def test_good_shapes(more: dict[str, Any]) -> None:
    check({"name": "abc", **more}, SHAPE, "body")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "body: must be of type object"),
        ({}, "body: name is missing"),
        ({"name": ""}, "body.name: must be a text"),
        ({"name": "abcd"}, "body.name: longer than 3"),
        ({"name": "a\0"}, "body.name: contains a zero byte"),
        ({"name": 1}, "body.name: must be of type string"),
        ({"name": "a", "nam": 1}, "body: unknown field 'nam'"),
        ({"name": "a", "count": -1}, "body.count: -1 is less than 0"),
        ({"name": "a", "count": 10}, "body.count: 10 is more than 9"),
        ({"name": "a", "count": True}, "body.count: must be of type integer"),
        ({"name": "a", "count": 1.0}, "body.count: must be of type integer"),
        ({"name": "a", "kind": "c"}, "body.kind: 'c' is not known"),
        ({"name": "a", "kind": ["a"]}, "body.kind: must be of type string"),
        ({"name": "a", "maybe": "x"}, "body.maybe: must be of type integer or null"),
        ({"name": "a", "choice": "c"}, "body.choice: 'c' is not known"),
        ({"name": "a", "items": []}, "body.items: has 0 items"),
        ({"name": "a", "items": [1, 2, 3]}, "body.items: has 3 items"),
        ({"name": "a", "items": [1, "x"]}, r"body.items\[1\]: must be of type integer"),
        ({"name": "a", "place": {"cpus": 1}}, "body.place: memory is missing"),
        ({"name": "a", "place": {"cpus": 1, "memory": 1, "gpus": [{}]}}, r"body.place.gpus\[0\]: uuid is missing"),
        ({"name": "a", "code": "x1\n"}, "does not look like"),
    ],
)
def test_bad_shapes(value: Any, message: str) -> None:
    with pytest.raises(errors.InvalidInput, match=message):
        check(value, SHAPE, "body")
