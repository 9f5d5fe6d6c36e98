"""What runs report of themselves."""

from __future__ import annotations

from runyard.model.json_schema import ANYTHING, Schema, described, integer, listed, or_null, record, text

NUMBER_OR_WORD: Schema = {"anyOf": [{"type": "number"}, {"type": "string", "enum": ["nan", "inf", "-inf"]}]}
STEP = or_null(described({"type": "number"}, "null where it was reported without one"))

METRIC = record(
    {
        "name": text(),
        "count": integer("Values; a step that was repeated after a restart counts once"),
        "first": NUMBER_OR_WORD,
        "last": described(NUMBER_OR_WORD, "The value reported last"),
        "minimum": described({"anyOf": [*NUMBER_OR_WORD["anyOf"], {"type": "null"}]}, "null: no value was a number"),
        "maximum": {"anyOf": [*NUMBER_OR_WORD["anyOf"], {"type": "null"}]},
        "last_step": STEP,
    }
)

METRICS = record(
    {
        "metrics": listed({"$ref": "#/components/schemas/Metric"}),
        "summary": described(ANYTHING, "What the run said of itself in the end"),
        "complete": described(
            {"type": "boolean"},
            "false: the run has ended and so much is still to be read that it is worth asking again",
        ),
    }
)

POINT: Schema = {
    "type": "array",
    "prefixItems": [STEP, described({"type": "number"}, "Seconds since 1970 by the run's clock"), NUMBER_OR_WORD],
    "minItems": 3,
    "maxItems": 3,
}
