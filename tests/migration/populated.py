"""Rows of a yard in use, as each revision of the schema had them: every table with every column of that time."""

from __future__ import annotations

from typing import Any

Rows = dict[str, list[dict[str, Any]]]

NOW = 1_700_000_000.0
DIGEST = "sha256:" + "5e" * 32
RESOURCES = '{"cpus": 1, "gpus": 0, "memory": 0}'
CAPACITY = '{"cpus": 4, "memory": 8000000000, "gpus": []}'
SPEC = '{"command": ["python", "train.py"], "params": {"lr": 0.1}}'
RECORD = '{"ending": "exit", "exit_code": 0, "peak_memory": 1000, "wall_time": 2.0}'


def run(number: int, state: str, **values: Any) -> dict[str, Any]:
    return {
        "id": number, "owner": "ann", "project": "digits", "name": f"run-{number}", "state": state, "reason": None,
        "detail": None, "exit_code": None, "priority": 0, "wanted_site": "", "lane": "ann/digits", "blocked": 0,
        "cpus": 1, "gpus": 0, "resources": RESOURCES, "spec": SPEC, "attempt": 0, "failures": 0, "site": None,
        "node": None, "granted": None, "record": None, "created_at": NOW, "queued_at": NOW, "started_at": None,
        "ended_at": None, "cancel_by": None, "cancel_at": None, "idempotency_key": None, "idempotency_digest": None,
        "recipe": None, **values,
    }  # fmt: skip


def attempt(number: int, state: str, **values: Any) -> dict[str, Any]:
    return {
        "run_id": number, "number": 1, "state": state, "outcome": None, "reason": None, "detail": None,
        "exit_code": None, "signal": None, "site": "local", "agent": "box", "batch_id": 1, "position": number,
        "native_id": "4711", "node": "box", "granted": RESOURCES, "record": None, "claimed_at": NOW + 1,
        "started_at": NOW + 2, "ended_at": None, **values,
    }  # fmt: skip


STARTED = {"attempt": 1, "site": "local", "node": "box", "granted": RESOURCES, "started_at": NOW + 2}
ENDED = {"exit_code": 0, "record": RECORD, "ended_at": NOW + 4}

FIRST: Rows = {
    "runs": [
        run(1, "succeeded", **STARTED, **ENDED, recipe="mnist", idempotency_key="once", idempotency_digest="d1"),
        run(2, "running", **STARTED, cancel_by="ann", cancel_at=NOW + 3),
        run(3, "queued", priority=5),
        run(4, "queued", blocked=1, wanted_site="cedar", detail="after run 2"),
    ],
    "attempts": [attempt(1, "ended", outcome="succeeded", **ENDED), attempt(2, "running")],
    "batches": [
        {
            "id": 1, "name": "ry-1-1-1", "site": "local", "agent": "box", "resources": RESOURCES, "size": 2,
            "created_at": NOW + 1,
        }
    ],
    "events": [{"run_id": 1, "attempt": 1, "at": NOW + 4, "kind": "succeeded", "message": "it ended well"}],
    "outputs": [{"run_id": 1, "attempt": 1, "path": "model.h5", "size": 7, "digest": DIGEST, "mode": 0o644}],
    "run_tags": [{"tag": "night", "run_id": 1}],
    "parents": [{"parent_id": 2, "gate_id": 1, "kind": "ok"}],
    "children": [{"gate_id": 1, "child_id": 4, "shut": 1}],
    "sites": [
        {"name": "local", "kind": "local", "config": "{}", "drained": 0, "explicit": 0, "note": "", "created_at": NOW}
    ],
    "agents": [
        {
            "site": "local", "name": "box", "incarnation": 3, "node": "box", "boot_id": "b1", "version": "0.1",
            "total": CAPACITY, "free": CAPACITY, "seen_at": NOW + 4, "unreachable": 0, "lease": 60.0,
        }
    ],
    "tokens": [
        {
            "id": 1, "name": "ann", "role": "admin", "site": None, "recipes": "[]", "digest": "t1", "created_at": NOW,
            "revoked_at": None,
        },
        {
            "id": 2, "name": "bob", "role": "member", "site": None, "recipes": "[]", "digest": "t2", "created_at": NOW,
            "revoked_at": NOW + 1,
        },
    ],
    "shares": [{"lane": "ann/digits", "amount": 12.5, "at": NOW}],
    "recipes": [
        {"name": "mnist", "config": '{"command": ["true"]}', "is_default": 1, "changed_by": "ann", "changed_at": NOW}
    ],
    "requests": [
        {
            "id": 1, "queue": "intake", "identity": "m1", "digest": "r1", "correlation_id": "c1", "reply_to": "replies",
            "recipe": "mnist", "first_run": 1, "run_count": 1, "is_group": 0, "error": None, "waiting": None,
            "received_at": NOW, "due_at": None, "replied_at": None, "tries": 0, "next_try": NOW, "trouble": None,
        }
    ],
    "counters": [{"name": "batches", "value": 1}, {"name": "runs", "value": 4}],
    "cursors": [
        {"name": "mail", "position": 1, "tries": 0, "failing_since": None, "next_try": NOW, "trouble": None}
    ],
    "keys": [{"name": "links", "value": "s3cret", "created_at": NOW}],
}  # fmt: skip

METRICS: Rows = {
    "metrics": [
        {
            "run_id": 1, "name": "loss", "count": 3, "first": 0.9, "last": 0.1, "minimum": 0.1, "maximum": 0.9,
            "last_step": 3.0, "last_at": NOW + 3, "attempt": 1, "reached": 3.0, "known": None,
        }
    ],
    "metric_positions": [{"run_id": 2, "attempt": 1, "position": 120, "is_open": 1, "dropped": 0}],
    "summaries": [{"run_id": 1, "body": '{"accuracy": 0.91}'}],
}  # fmt: skip

SWEEPS: Rows = {
    "sweeps": [
        {
            "id": 1, "owner": "ann", "project": "digits", "name": "grid", "identity": "s1", "document": "{}",
            "planned": 1, "made": 1, "places": 2, "decided": 1, "hungry": 1, "detail": None, "created_at": NOW,
            "changed_at": NOW, "cancelled_at": None,
        }
    ],
    "trials": [
        {
            "sweep_id": 1, "number": 1, "params": '{"lr": 0.1}', "value": 0.1, "low": 0.1, "high": 0.1, "n": 1,
            "stopped": 0,
        }
    ],
    "sweep_runs": [
        {"sweep_id": 1, "position": 1, "trial": 1, "rep": 1, "seed": 1 << 40, "run_id": 1},
        {"sweep_id": 1, "position": 2, "trial": 1, "rep": 2, "seed": 2, "run_id": None},
    ],
    "decisions": [
        {"sweep_id": 1, "number": 1, "at": NOW, "kind": "trial", "trial": 1, "run_id": None, "body": "{}"}
    ],
}  # fmt: skip

CHECKPOINTS: Rows = {
    "checkpoints": [
        {
            "run_id": 2, "number": 1, "attempt": 1, "at": NOW + 3, "tree": DIGEST, "size": 1 << 33, "files": 2,
            "site": "local", "agent": "box",
        }
    ]
}  # fmt: skip

CONDEMNED: Rows = {"condemned": [{"digest": DIGEST, "state": "condemned", "since": NOW}]}

# What came with each revision; the others only changed tables that were there.
NEW_IN: dict[str, Rows] = {
    "0001": FIRST, "0005": METRICS, "0006": SWEEPS, "0007": CHECKPOINTS, "0008": CONDEMNED,
}  # fmt: skip
