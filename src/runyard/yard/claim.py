"""Handing out work: attempts, batches and events in the transaction that answers a sync."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import Connection

from runyard.model import template
from runyard.model.resources import Capacity, Resources
from runyard.model.states import AttemptState, RunState
from runyard.model.wire import AttemptKey, Claim, StopOrder, SyncRequest
from runyard.store import attempts, counters, queue, runs
from runyard.store.rows import AnyRow
from runyard.yard import placement
from runyard.yard.placement import Head
from runyard.yard.settle import HALF_LIFE

SPARE_HEADS = 16  # how far behind the front of a lane a smaller run is looked for


def claim(
    connection: Connection, now: float, site: AnyRow, agent: AnyRow, request: SyncRequest, prefix: str
) -> tuple[list[Claim], bool]:
    """The attempts that this agent gets now, and whether more are waiting."""
    most = _most(request)
    if site.drained or most <= 0:
        return [], False
    heads = list(_heads(connection, site, most + SPARE_HEADS))
    if not heads:
        return [], False
    total = Capacity.from_json(json.loads(agent.total))
    chosen = placement.choose(
        heads, _usage(connection, now), request.free, total, now=now, ahead=request.ahead, room=request.room
    )
    specs = {row.id: json.loads(row.spec) for row in runs.get_many(connection, [head.id for head in chosen])}
    claims: list[Claim] = []
    for _, group in groupby(chosen, key=lambda head: (head.resources, specs[head.id].get("options"))):
        claims += _batch(connection, now, agent, list(group), specs, prefix)
    return claims, len(heads) > len(chosen)


def _most(request: SyncRequest) -> int:
    """How many could be taken at the most: every run needs a cpu."""
    slots = request.room or 0 if request.free.elastic else max(0, request.free.cpus)
    return slots + request.ahead


def _heads(connection: Connection, site: AnyRow, limit: int) -> Iterable[Head]:
    for wanted in [site.name] if site.explicit else ["", site.name]:
        for lane in queue.lanes(connection, wanted):
            for row in queue.heads(connection, wanted, lane, limit):
                yield Head(
                    id=row.id, lane=row.lane, priority=row.priority, queued_at=row.queued_at, attempt=row.attempt,
                    resources=Resources(**json.loads(row.resources)),
                )  # fmt: skip


def _usage(connection: Connection, now: float) -> placement.Usage:
    return placement.Usage(now=queue.in_use(connection), past=queue.past_use(connection, now, HALF_LIFE))


def _batch(
    connection: Connection,
    now: float,
    agent: AnyRow,
    heads: Sequence[Head],
    specs: Mapping[int, dict[str, Any]],
    prefix: str,
) -> list[Claim]:
    """Attempts that are alike for a scheduler: the same resources, the same options."""
    batch_id = counters.take(connection, "batches")
    name, resources = f"{prefix}-{batch_id}", heads[0].resources
    attempts.insert_batch(
        connection,
        {"id": batch_id, "name": name, "site": agent.site, "agent": agent.name, "size": len(heads), "created_at": now,
         "resources": json.dumps(resources.to_json())},
    )  # fmt: skip
    attempts.insert_attempts(
        connection,
        [{"run_id": head.id, "number": head.attempt + 1, "state": AttemptState.CLAIMED, "site": agent.site,
          "agent": agent.name, "batch_id": batch_id, "position": position, "claimed_at": now}
         for position, head in enumerate(heads, 1)],
    )  # fmt: skip
    _start_runs(connection, now, agent, heads)
    return [
        make_claim(AttemptKey(run=head.id, attempt=head.attempt + 1), name, position, specs[head.id], resources)
        for position, head in enumerate(heads, 1)
    ]


def _start_runs(connection: Connection, now: float, agent: AnyRow, heads: Sequence[Head]) -> None:
    fresh = {"node": None, "detail": None, "granted": None, "record": None, "started_at": None}
    started = {"state": RunState.STARTING, "site": agent.site, **fresh}
    runs.change_many(connection, {head.id: {**started, "attempt": head.attempt + 1} for head in heads})
    runs.insert_events(
        connection,
        [{"run_id": head.id, "attempt": head.attempt + 1, "at": now, "kind": "claimed",
          "message": f"claimed by agent {agent.name} of site {agent.site}"} for head in heads],
    )  # fmt: skip


def make_claim(
    key: AttemptKey,
    batch: str,
    position: int,
    spec: dict[str, Any],
    resources: Resources,
    state: AttemptState = AttemptState.CLAIMED,
) -> Claim:
    argv = template.fill_command(spec["command"], spec.get("params", {}))
    return Claim(key=key, batch=batch, position=position, spec=spec, argv=argv, resources=resources, state=state)


def owned(connection: Connection, site: str, agent: str) -> list[Claim]:
    """What an agent had before it was restarted."""
    return [_claim_of(row) for row in attempts.alive(connection, site, agent)]


def _claim_of(row: AnyRow) -> Claim:
    spec = json.loads(row.spec)
    key, resources = AttemptKey(run=row.run_id, attempt=row.number), Resources(**spec.get("resources", {}))
    return make_claim(key, row.batch, row.position, spec, resources, AttemptState(row.state))


def stop_orders(connection: Connection, site: str, agent: str) -> list[StopOrder]:
    return [
        StopOrder(key=AttemptKey(run=row.run_id, attempt=row.number), reason="user")
        for row in attempts.stopping(connection, site, agent)
    ]
