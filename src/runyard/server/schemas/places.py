"""Sites, agents and tokens."""

from __future__ import annotations

from runyard.model import roles
from runyard.model.declaration import schema
from runyard.model.json_schema import BOOLEAN, TEXTS, described, integer, listed, one_of, or_null, record, ref, text
from runyard.model.site import SiteSpec
from runyard.server.schemas.common import NAME, RUN_ID, RUN_STATE, TIME

AGENT = record(
    {
        "site": text(),
        "name": text(),
        "node": text("The machine it runs on"),
        "version": text(),
        "incarnation": integer("Rises with each start", 1),
        "state": one_of(["alive", "full", "unreachable"], "full: its disk is, so it starts nothing"),
        "total": ref("Capacity"),
        "free": ref("Capacity"),
        "labels": described(TEXTS, "Of its node"),
        "limits": ref("Limits"),
        "disk": or_null(ref("Disk")),
        "trouble": or_null(text("Why it starts nothing, and what to do")),
        "seen_at": TIME,
        "since": TIME,
    }
)

NEW_SITE = record({"name": NAME, **schema(SiteSpec)["properties"]}, required=["name", "kind"])

SITE = record(
    {
        "name": text(),
        "kind": text("Which backend serves it"),
        "drained": described(BOOLEAN, "True: it starts nothing new"),
        "drained_at": TIME,
        "explicit": described(BOOLEAN, "True: it takes only runs that name it"),
        "note": text("Why, for people"),
        "created_at": TIME,
        "config": ref("SiteSpec"),
        "agents": listed(ref("Agent")),
        "active_runs": integer("How many runs it has"),
    }
)
NODE = record(
    {
        "name": text(),
        "agent": or_null(text("Who serves it; null where a scheduler does")),
        "state": one_of(["alive", "drained", "full", "unreachable"]),
        "since": TIME,
        "total": or_null(ref("Capacity")),
        "free": or_null(ref("Capacity")),
        "labels": TEXTS,
        "limits": ref("Limits"),
        "disk": or_null(ref("Disk")),
        "trouble": or_null(text("Why it starts nothing, and what to do")),
        "runs": listed(
            record(
                {"id": RUN_ID, "owner": text(), "project": text(), "name": text(), "state": RUN_STATE, "since": TIME}
            )
        ),
    },
    description="A node of a site, and who runs what on it.",
)
FULL_SITE = record(
    {**SITE["properties"], "nodes": listed(ref("Node")), "runs": listed(ref("Run"))},
    description="A site with its nodes and the runs it has.",
)

ROLE = one_of(roles.Role, "What its holder may do")
RECIPES = described(TEXTS, "Of a caller: those it may start")
_OF_TOKEN = {
    "id": integer("To revoke it by", 1),
    "name": text(),
    "role": ROLE,
    "site": or_null(text("Of an agent")),
    "recipes": RECIPES,
    "limits": ref("Limits"),
}
TOKEN = record({**_OF_TOKEN, "created_at": TIME})
SECRET = record({**_OF_TOKEN, "secret": text("The token itself; it is shown this once")})
