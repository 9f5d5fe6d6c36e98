"""What agents and the yard say to each other: runyard.model.wire."""

from __future__ import annotations

from runyard.model import nodes
from runyard.server.schemas.build import (
    ANYTHING,
    BOOLEAN,
    NUMBER,
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
from runyard.server.schemas.common import ATTEMPT_STATE, DIGEST, NAME, RUN_ID
from runyard.server.schemas.nodes import LABEL

KEY = text("run.attempt, such as 42.1", pattern=r"^[1-9][0-9]{0,17}\.[1-9][0-9]{0,8}$")

HELLO = record(
    {
        "site": NAME,
        "agent": NAME,
        "node": text(minLength=1, maxLength=300),
        "boot_id": text(maxLength=100),
        "version": text(maxLength=100),
        "total": ref("Capacity"),
        "lease": integer("Seconds it may be silent, where that is more than the yard's own lease", 0, 86400),
        "labels": described(listed(LABEL, maxItems=nodes.MOST), "Of the node"),
        "limits": ref("Limits"),
    },
    required=["site", "agent", "node", "boot_id", "version", "total"],
)

REPORTED_OUTPUT = record(
    {
        "path": text(minLength=1, maxLength=4096),
        "size": integer("Bytes", 0, (1 << 62)),
        "digest": DIGEST,
        "mode": integer("Permission bits", 0, 0o177777),
    }
)

REPORT = record(
    {
        "key": KEY,
        "state": ATTEMPT_STATE,
        "node": or_null(text(maxLength=300)),
        "detail": or_null(text(maxLength=1 << 16)),
        "granted": or_null(ANYTHING),
        "native_id": or_null(text(maxLength=300)),
        "started_at": or_null(NUMBER),
        "record": or_null(ANYTHING),
        "gone": or_null(text(maxLength=1 << 16)),
        "outputs": listed(ref("ReportedOutput")),
        "brought": or_null(integer("Of one that goes on: the wish for outputs that these answer", 1, 1 << 31)),
        "checkpoint": or_null(
            record(
                {
                    "tree": or_null(described(DIGEST, "The folder of its files; null: they are at its site only")),
                    "size": integer("Bytes", 0, 1 << 62),
                    "files": integer("How many", 0, 1 << 31),
                }
            )
        ),
        "saved": or_null(integer("Of one that goes on: the wish for its checkpoints that this answers", 1, 1 << 31)),
    },
    required=["key", "state"],
    description="What an agent saw of one attempt.",
)

SYNC_REQUEST = record(
    {
        "site": NAME,
        "agent": NAME,
        "incarnation": integer("From hello", 0, (1 << 31)),
        "free": ref("Capacity"),
        "ahead": integer("How many more to take than fit now", 0, 10_000),
        "room": or_null(integer("The most attempts to take at once", 0, 1_000_000)),
        "reports": listed(ref("Report")),
        "disk": or_null(ref("Disk")),
        "away": text("Why its node does not answer, while it does not", maxLength=1 << 16),
    },
    required=["site", "agent", "incarnation", "free"],
)

CLAIM = record(
    {
        "key": KEY,
        "batch": text("The unique name of its batch"),
        "position": integer("Its index in the batch", 1),
        "spec": ANYTHING,
        "argv": TEXTS,
        "resources": ANYTHING,
        "avoid": described(TEXTS, "Nodes of the site that failed earlier attempts of the run"),
        "state": ATTEMPT_STATE,
        "permit": or_null(described(NUMBER, "Seconds that it may live after the yard last heard of its agent")),
        "resume": or_null(
            record(
                {
                    "tree": or_null(described(DIGEST, "The newest checkpoint that the yard has")),
                    "held": described(BOOLEAN, "What lies at its place is at least as new"),
                    "afresh": described(BOOLEAN, "It is to begin anew"),
                },
                description="What a later attempt may go on from.",
            )
        ),
    },
    description="An attempt that now belongs to the agent.",
)

EXPIRY_QUESTION = record(
    {
        "site": NAME,
        "agent": NAME,
        "incarnation": integer("From hello", 0, 1 << 31),
        "runs": described(listed(RUN_ID), "Runs that have checkpoints at the agent's place"),
    }
)

SYNC_RESPONSE = record(
    {
        "claims": listed(ref("Claim")),
        "stops": listed(record({"key": KEY, "reason": text()})),
        "settled": listed(KEY),
        "given_up": described(listed(KEY), "Of these, those that the yard had given up without the agent's report"),
        "wanted": described(
            listed(
                record(
                    {
                        "key": KEY,
                        "number": integer("The newest wish", 1),
                        "what": one_of(("outputs", "checkpoints")),
                    }
                )
            ),
            "Of which attempts to bring what they have left so far",
        ),
        "more": described(BOOLEAN, "Runs are waiting that would fit"),
    }
)
