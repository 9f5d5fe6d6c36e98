from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from runyard import errors
from runyard.model import schema

TRAINING: dict[str, Any] = {
    "type": "object",
    "properties": {
        "batch_size": {"type": "integer", "minimum": 1, "maximum": 1024, "default": 32},
        "model": {
            "type": "object",
            "default": {},
            "properties": {
                "base": {"enum": ["MobileNet_v2", "Xception"], "default": "Xception"},
                "learning_rate": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
            },
            "additionalProperties": False,
        },
        "downsample": {"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 1}, {"const": "min"}]},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/word"}, "maxItems": 2, "uniqueItems": True},
    },
    "required": ["model"],
    "$defs": {"word": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}},
}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"model": {"learning_rate": 5}}, "params.model.learning_rate: 5 is more than the maximum 1"),
        ({"model": {"learning_rate": 0}}, "params.model.learning_rate: 0 is not more than 0"),
        ({"model": {"learning_rate": "x"}}, "params.model.learning_rate: 'x' is not of type number"),
        ({"model": {"learning_rate": True}}, "params.model.learning_rate: true is not of type number"),
        ({"model": {"base": "Xceptio"}}, "params.model.base: 'Xceptio' is not one of 'MobileNet_v2', 'Xception'"),
        ({"model": {"bases": "Xception"}}, "params.model.bases: is not known"),
        ({"model": 1}, "params.model: 1 is not of type object"),
        ({"batch_size": 0}, "params.batch_size: 0 is less than the minimum 1"),
        ({"batch_size": 2.5}, "params.batch_size: 2.5 is not of type integer"),
        ({"downsample": 0}, "params.downsample: 0 is not of type null"),
        ({"tags": ["ab", "Ab"]}, "params.tags[1]: 'Ab' does not look like ^[a-z]+$"),
        ({"tags": ["abcdef"]}, "params.tags[0]: has 6 characters, more than the maximum 5"),
        ({"tags": ["a", "b", "c"]}, "params.tags: has 3 items, more than the maximum 2"),
        ({"tags": ["a", "a"]}, "params.tags[1]: 'a' is there twice"),
    ],
)
def test_the_sentence_names_the_place(more: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        schema.check({"model": {}, **more}, TRAINING, "params")
    assert caught.value.message == message


def test_what_is_missing_is_named() -> None:
    with pytest.raises(errors.InvalidInput, match=r"^params.model: is missing$"):
        schema.check({}, TRAINING, "params")


def test_a_misspelt_name_is_answered_with_the_right_one() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        schema.check({"model": {"learning_rat": 1}}, TRAINING, "params")
    assert caught.value.fix == "did you mean 'learning_rate'?"


def test_defaults_at_any_depth() -> None:
    given = {"model": {"learning_rate": 0.1}}
    filled = schema.with_defaults(given, TRAINING)
    assert filled == {"batch_size": 32, "model": {"learning_rate": 0.1, "base": "Xception"}}
    assert given == {"model": {"learning_rate": 0.1}}
    assert schema.with_defaults({}, TRAINING)["model"] == {"base": "Xception"}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([], "schema: must be a JSON Schema"),
        ({"typ": "object"}, "schema: the keyword 'typ' is not known"),
        ({"contains": {}}, "the keyword 'contains' is not known"),
        ({"type": "int"}, "schema.type: 'int' is not known"),
        ({"type": []}, "schema.type: must be a type"),
        ({"properties": {"a": {"minimum": "1"}}}, "schema.properties.a.minimum: must be a number"),
        ({"properties": []}, "schema.properties: must be a mapping"),
        ({"properties": {"a": 1}}, "schema.properties.a: must be a schema"),
        ({"enum": []}, "schema.enum: must be a list of values"),
        ({"required": "a"}, "schema.required: must be a list"),
        ({"pattern": "("}, "schema.pattern: '\\(' is not a regular expression"),
        ({"patternProperties": {"(": {}}}, "is not a regular expression"),
        ({"multipleOf": 0}, "schema.multipleOf: must be a number above zero"),
        ({"minLength": -1}, "schema.minLength: must be a whole number"),
        ({"anyOf": {}}, "schema.anyOf: must be a list of schemas"),
        ({"$ref": "https://example.org/schema"}, "leads outside"),
        ({"$ref": "other.json"}, "leads outside"),
        ({"$ref": "#/$defs/x"}, "leads nowhere"),
        ({"$ref": "#/$defs/x/enum", "$defs": {"x": {"enum": [1]}}}, "leads outside"),
    ],
)
def test_schemas_that_cannot_be_kept(bad: Any, message: str) -> None:
    with pytest.raises(errors.InvalidInput, match=message):
        schema.parse(bad)


def test_a_schema_that_refers_to_itself() -> None:
    tree = schema.parse({"type": "object", "additionalProperties": {"$ref": "#"}})
    schema.check({"a": {"b": {}}}, tree, "params")
    with pytest.raises(errors.InvalidInput, match=r"params.a.b: 1 is not of type object"):
        schema.check({"a": {"b": 1}}, tree, "params")
    with pytest.raises(errors.InvalidInput, match="refers to itself without end"):
        schema.check({}, schema.parse({"$ref": "#"}), "params")


NUMBERS = st.integers(-3, 3) | st.sampled_from([-0.5, 0.0, 1.0, 1.5, 2.0])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text("abc", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
COUNTS = st.integers(0, 3)
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
        | st.lists(st.sampled_from(["object", "integer", "null"]), min_size=1, max_size=2, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "const": VALUES,
        "minimum": NUMBERS,
        "maximum": NUMBERS,
        "exclusiveMinimum": NUMBERS,
        "exclusiveMaximum": NUMBERS,
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "minLength": COUNTS,
        "maxLength": COUNTS,
        "pattern": st.sampled_from(["^a", "b$", "[bc]"]),
        "minItems": COUNTS,
        "maxItems": COUNTS,
        "uniqueItems": st.booleans(),
        "minProperties": COUNTS,
        "maxProperties": COUNTS,
        "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
    },
)
SCHEMAS = st.recursive(
    LEAVES | st.booleans(),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "[bc]"]), inner, max_size=2),
            "additionalProperties": inner,
            "propertyNames": inner,
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
        },
    ),
    max_leaves=6,
)


@given(st.data())
def test_verdicts_are_those_of_a_complete_validator(data: st.DataObject) -> None:
    rules, value = data.draw(SCHEMAS), data.draw(VALUES)
    assume(isinstance(rules, dict))
    known = schema.parse(rules)
    try:
        schema.check(value, known, "value")
        verdict = True
    except errors.InvalidInput:
        verdict = False
    assert verdict == jsonschema_rs.is_valid(rules, value)
