"""Recipes, and what programs that call them see."""

from __future__ import annotations

from runyard.model.json_schema import (
    ANYTHING,
    BOOLEAN,
    TEXTS,
    described,
    integer,
    listed,
    one_of,
    or_null,
    record,
    ref,
    text,
)
from runyard.server.schemas.common import REASON, RUN_ID, RUN_STATE, TIME

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
