"""Recipes, and what programs that call them see."""

from __future__ import annotations

from runyard.model import recipe, reply
from runyard.model.native_units import Writing
from runyard.server.schemas.build import (
    ANYTHING,
    BOOLEAN,
    TEXTS,
    Schema,
    described,
    duration,
    integer,
    listed,
    one_of,
    or_null,
    record,
    ref,
    size,
    text,
)
from runyard.server.schemas.common import NAME, OPTIONS, REASON, RUN_ID, RUN_STATE, TIME
from runyard.server.schemas.runs import RUN_SPEC

_AMOUNTS: dict[str, Schema] = {
    **{name: or_null(integer("", 1)) for name in recipe.COUNTED},
    **{name: or_null(size("The most")) for name in recipe.SIZES},
    "time": or_null(duration("The most")),
}
_WANTED: Schema = {
    "anyOf": [
        text("The parameter, as name or a.b", minLength=1, maxLength=200),
        record(
            {
                "param": text("The parameter, as name or a.b", minLength=1, maxLength=200),
                "writing": one_of(Writing, "Whose units a bare number has"),
            },
            required=["param"],
        ),
    ]
}

_REPLY = record(
    {
        "fields": or_null(listed(one_of(reply.KNOWN_FIELDS))),
        "values": or_null(described(ANYTHING, "Values from JSON files of the outputs, as file.json or file.json:a.b")),
        "files": or_null(described(TEXTS, "Globs of the outputs that are told")),
        "inline": or_null(described({"anyOf": [{"const": 0}, size("")]}, "Files up to this size are in the reply")),
    },
    required=[],
    description="What a program that asked through the broker is told",
)

RECIPE_SPEC = record(
    {
        "description": or_null(text("For people", maxLength=2000)),
        "schema": or_null(described(ANYTHING, "JSON Schema of the parameters; references inside it alone")),
        "bounds": or_null(record(_AMOUNTS, required=[], description="The most that a request may ask for")),
        "resources_from": or_null(
            record(
                dict.fromkeys(recipe.BOUNDED, _WANTED),
                required=[],
                description="Which parameter of a request says how much of a resource it wants",
            )
        ),
        "options_from": or_null(described(OPTIONS, "Which parameter of a request is which option of the scheduler")),
        "callers": or_null({"description": "Tokens that may call it", "anyOf": [NAME, listed(NAME)]}),
        "reply": or_null(_REPLY),
        **{name: RUN_SPEC["properties"][name] for name in recipe.RUN_FIELDS},
    },
    required=["command"],
    description="A run that other programs start with parameters. The further fields are those of a run.",
)

RECIPE = record(
    {
        "name": text(),
        "default": described(BOOLEAN, "True: it is meant when none is named"),
        "changed_by": text(),
        "changed_at": TIME,
        "config": described(ANYTHING, "The RecipeSpec, without fields that have their default"),
    }
)

SUMMARY = record(
    {
        "name": text(),
        "default": described(BOOLEAN, "True: it is meant when none is named"),
        "description": text(),
        "schema": described(ANYTHING, "JSON Schema of its parameters"),
        "callers": described(TEXTS, "Tokens that may call it; none: every member"),
    },
    description="A recipe as programs see it.",
)

REQUEST = record(
    {
        "id": RUN_ID,
        "recipe": text(),
        "owner": text("Whose token asked for it"),
        "state": RUN_STATE,
        "reason": REASON,
        "detail": or_null(text("One sentence more")),
        "exit_code": or_null({"type": "integer"}),
        "params": ANYTHING,
        "created_at": TIME,
        "started_at": TIME,
        "ended_at": TIME,
    },
    description="What became of a request.",
)
FULL_REQUEST = record(
    {**REQUEST["properties"], "outputs": listed(ref("Output"))},
    description="What became of a request, and the files that its run left.",
)

REPLY = record(
    {
        "id": integer("The request's number", 1),
        "queue": text("The intake that it came by"),
        "correlation_id": or_null(text()),
        "reply_to": or_null(text("The queue for the reply")),
        "recipe": or_null(text()),
        "runs": or_null(described(listed(RUN_ID, minItems=2, maxItems=2), "The first and the last of its runs")),
        "state": one_of(
            ("waiting", "running", "due", "replied", "unwanted"),
            "waiting: for files that its runs need; unwanted: it named no queue for a reply",
        ),
        "error": or_null(text("Why it was refused")),
        "tries": integer("Times that the reply was tried in vain"),
        "trouble": or_null(text("Why the last try was in vain")),
        "received_at": TIME,
        "replied_at": TIME,
        "next_try": TIME,
    },
    description="A request that came through the broker, and its reply.",
)
