"""Nodes of a site: their names, their labels, and whose runs their agents take."""

from __future__ import annotations

from runyard.model import nodes
from runyard.server.schemas.build import Schema, described, integer, listed, or_null, record, text
from runyard.server.schemas.common import NAME

NODE_NAME = text(pattern=f"^{nodes.NAME.pattern}$")
LABEL = text(pattern=f"^{nodes.LABEL.pattern}$")
LABELS: Schema = {
    "anyOf": [
        LABEL,
        listed(LABEL, maxItems=nodes.MOST),
        {
            "type": "object",
            "propertyNames": {"pattern": f"^{nodes.KEY}$"},
            "additionalProperties": {"type": "string", "pattern": f"^({nodes.VALUE})?$"},
            "maxProperties": nodes.MOST,
        },
    ]
}
LIMITS = record(
    {
        "projects": described(listed(NAME), "Of these projects only; empty: of all"),
        "users": described(listed(NAME), "Of these people only; empty: of all"),
    },
    description="Whose runs an agent takes.",
)
DISK = record(
    {
        "path": text("Where runs are written", maxLength=4096),
        "free": integer("Bytes"),
        "kept": integer("With less than this, nothing new is started"),
        "cache": or_null(integer("Bytes of code and data that are there for later runs; null: not known yet")),
        "cache_limit": or_null(integer("What of that is kept at most, besides what runs need")),
    },
    description="How much room there is; of several places the one that is nearest to being full.",
)


def node_names(description: str) -> Schema:
    return {"description": description, "anyOf": [NODE_NAME, listed(NODE_NAME, maxItems=nodes.MOST)]}
