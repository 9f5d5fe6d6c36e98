"""Sites, agents and tokens."""

from __future__ import annotations

from runyard.model import resources, roles, site
from runyard.server.schemas.build import BOOLEAN, TEXTS, described, integer, listed, one_of, or_null, record, ref, text
from runyard.server.schemas.common import ENVIRONMENT, NAME, OPTIONS, RUN_ID, RUN_STATE, TIME

GPU = record({"uuid": text(), "type": text("Its name"), "memory": integer("Bytes", 0, 1 << 60)}, required=["uuid"])
CAPACITY = record(
    {
        "cpus": integer("CPU slots", -resources.MAX_COUNT, resources.MAX_COUNT),
        "memory": integer("Bytes", -resources.MAX_MEMORY, resources.MAX_MEMORY),
        "gpus": listed(ref("Gpu")),
        "elastic": described(BOOLEAN, "True: it has a queue of its own, and everything fits"),
    },
    required=["cpus", "memory"],
    description="Slots: all of them, or those that are free; below zero where a place was made smaller.",
)

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

SITE_SPEC = record(
    {
        "kind": text("Which backend serves it: local, slurm, gridengine, ssh", maxLength=100),
        "dir": or_null(text("A directory that the compute nodes see", maxLength=4096)),
        "ssh": described(TEXTS, "Login nodes, tried in order; of kind ssh the nodes themselves"),
        "options": described(OPTIONS, "For the scheduler: account, partition, queue …; of kind ssh: cpus, node.gpus …"),
        "setup": described(TEXTS, "Shell lines that run on the compute node before each command"),
        "env": described(ENVIRONMENT, "Default variables; a run's own win"),
        "python": or_null(text("Interpreter for runners on the compute nodes", maxLength=4096)),
        "served_by": one_of([site.YARD, site.AGENT], "The yard's own process, or agents that dial in"),
    },
    required=[],
    description="A site as it is described once.",
)
NEW_SITE = record({"name": NAME, **SITE_SPEC["properties"]}, required=["name", "kind"])

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
NEW_TOKEN = record(
    {"name": NAME, "role": ROLE, "site": or_null(NAME), "recipes": listed(NAME), "limits": ref("Limits")},
    required=["name", "role"],
)
SECRET = record({**_OF_TOKEN, "secret": text("The token itself; it is shown this once")})
