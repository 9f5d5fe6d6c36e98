"""Assigning runs to agents: attempts, batches and events in the transaction that answers a sync."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import Connection

from runyard.model import command
from runyard.model.declaration import names
from runyard.model.nodes import Limits
from runyard.model.resources import Resources
from runyard.model.spec import RunSpec
from runyard.model.states import AttemptState, Reason, RunState
from runyard.model.wire import CHECKPOINTS, AttemptKey, Claim, OutputWish, Resume, StopOrder, SyncRequest
from runyard.store import attempts, counters, queue, runs, site_rows
from runyard.store.rows import AnyRow
from runyard.store.site_rows import Node
from runyard.yard.agents import permits
from runyard.yard.checkpoints import checkpoints
from runyard.yard.placement import fair_share, tracks
from runyard.yard.placement.fair_share import Head
from runyard.yard.runs.settle import HALF_LIFE

SPARE_HEADS = 16  # how far behind the front of a lane a smaller run is looked for
NODES_FAULT = (Reason.NODE_LOST, Reason.LOST, Reason.LAUNCH)  # endings after which a retry avoids the node
ALIKE = names(RunSpec, lambda one: one.alike)  # options that a scheduler gets once for a whole batch
MOST_AVOIDED = 3  # nodes, the latest ones: when everything fails everywhere, the nodes are not to blame


def claim(
    connection: Connection,
    now: float,
    site: AnyRow,
    agent: AnyRow,
    request: SyncRequest,
    limits: Limits,
    prefix: str,
    permit: float,
) -> tuple[list[Claim], bool]:
    """The attempts that this agent gets now, and whether more are waiting. `limits` are those of its token; `permit` is
    the yard's setting."""
    most = _most(request)
    if site.drained or most <= 0:
        return [], False
    node = site_rows.node_of(agent)
    heads = list(_heads(connection, site, node, limits, most + SPARE_HEADS))
    if not heads:
        return [], False
    others = checkpoints.elsewhere(connection, now, agent, heads)
    chosen = fair_share.choose(
        [head for head in heads if head.id not in others], _usage(connection, now), request.free, node.total, now=now,
        ahead=request.ahead, room=request.room,
    )  # fmt: skip
    rows = runs.get_many(connection, [head.id for head in chosen])
    specs = {row.id: json.loads(row.spec) for row in rows}
    granted = {row.id: permits.granted(site, agent, specs[row.id], row.failures, permit) for row in rows}
    avoid = _bad_nodes(connection, site.name, [(head.id, head.attempt + 1, head.resources) for head in chosen])
    resume = checkpoints.resumes(connection, site.name, agent.name, {head.id: head.attempt + 1 for head in chosen})

    def alike(head: Head) -> tuple[Any, ...]:
        spec = specs[head.id]
        return head.resources, *(spec.get(name) for name in ALIKE), avoid.get(head.id)

    claims: list[Claim] = []
    for _, group in groupby(chosen, key=alike):
        claims += _batch(connection, now, agent, list(group), specs, avoid, granted, prefix)
    claims = [dataclasses.replace(claim, resume=resume.get(claim.key.run)) for claim in claims]
    _tell_prospects(connection, now, claims, resume)
    return claims, len(heads) > len(chosen)


def _tell_prospects(
    connection: Connection, now: float, claims: Sequence[Claim], resume: Mapping[int, Resume]
) -> None:  # fmt: skip
    told = checkpoints.prospects(connection, resume)
    events = [
        {"run_id": claim.key.run, "attempt": claim.key.attempt, "at": now, "kind": "checkpoint", "message": told[run]}
        for claim in claims
        if (run := claim.key.run) in told
    ]
    runs.insert_events(connection, events)


def _bad_nodes(
    connection: Connection, site: str, wanted: Iterable[tuple[int, int, Resources]]
) -> dict[int, tuple[str, ...]]:
    """Nodes of the site that failed these runs before these attempts. Of several nodes it is not known which one
    failed."""
    before = {run_id: number for run_id, number, resources in wanted if number > 1 and resources.nodes == 1}
    found: dict[int, list[str]] = {}
    for row in attempts.nodes_of(connection, before, site, NODES_FAULT):
        if row.number < before[row.run_id]:
            nodes = found.setdefault(row.run_id, [])
            nodes[:] = [*(node for node in nodes if node != row.node), row.node]
    return {run_id: tuple(nodes[-MOST_AVOIDED:]) for run_id, nodes in found.items()}


def _most(request: SyncRequest) -> int:
    """The maximum number of runs to take: every run needs a cpu."""
    slots = request.room or 0 if request.free.elastic else max(0, request.free.cpus)
    return slots + request.ahead


def _heads(connection: Connection, site: AnyRow, node: Node, limits: Limits, limit: int) -> Iterable[Head]:
    for wanted in [site.name] if site.explicit else ["", site.name]:
        for track in queue.tracks(connection, wanted):
            for row in queue.heads(connection, wanted, track, limit) if tracks.parse(track).suits(node, limits) else ():
                yield Head(
                    id=row.id, lane=row.lane, priority=row.priority, queued_at=row.queued_at, attempt=row.attempt,
                    resources=Resources(**json.loads(row.resources)),
                )  # fmt: skip


def _usage(connection: Connection, now: float) -> fair_share.Usage:
    return fair_share.Usage(now=queue.in_use(connection), past=queue.past_use(connection, now, HALF_LIFE))


def _batch(
    connection: Connection,
    now: float,
    agent: AnyRow,
    heads: Sequence[Head],
    specs: Mapping[int, dict[str, Any]],
    avoid: Mapping[int, tuple[str, ...]],
    granted: Mapping[int, float | None],
    prefix: str,
) -> list[Claim]:
    """Attempts that are alike for a scheduler: resources, options, warning, nodes."""
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
          "agent": agent.name, "batch_id": batch_id, "position": position, "claimed_at": now,
          "permit": granted[head.id]}
         for position, head in enumerate(heads, 1)],
    )  # fmt: skip
    _start_runs(connection, now, agent, heads)
    return [
        Claim(
            key=AttemptKey(run=head.id, attempt=head.attempt + 1), batch=name, position=position, spec=specs[head.id],
            argv=command.argv_of(specs[head.id]), resources=resources, avoid=avoid.get(head.id, ()),
            permit=granted[head.id],
        )
        for position, head in enumerate(heads, 1)
    ]  # fmt: skip


def _start_runs(connection: Connection, now: float, agent: AnyRow, heads: Sequence[Head]) -> None:
    fresh = {"node": None, "detail": None, "granted": None, "record": None, "started_at": None}
    started = {"state": RunState.STARTING, "site": agent.site, **fresh}
    runs.change_many(connection, {head.id: {**started, "attempt": head.attempt + 1} for head in heads})
    runs.insert_events(
        connection,
        [{"run_id": head.id, "attempt": head.attempt + 1, "at": now, "kind": "claimed",
          "message": f"claimed by agent {agent.name} of site {agent.site}"} for head in heads],
    )  # fmt: skip


def owned(connection: Connection, site: str, agent: str) -> list[Claim]:
    """The attempts that an agent had before its restart, as they were first claimed."""
    claims = [_claim_of(row) for row in attempts.alive(connection, site, agent)]
    avoid = _bad_nodes(connection, site, [(claim.key.run, claim.key.attempt, claim.resources) for claim in claims])
    resume = checkpoints.resumes(connection, site, agent, {claim.key.run: claim.key.attempt for claim in claims})
    return [
        dataclasses.replace(claim, avoid=avoid.get(claim.key.run, ()), resume=resume.get(claim.key.run))
        for claim in claims
    ]


def _claim_of(row: AnyRow) -> Claim:
    spec = json.loads(row.spec)
    return Claim(
        key=AttemptKey(run=row.run_id, attempt=row.number), batch=row.batch, position=row.position, spec=spec,
        argv=command.argv_of(spec), resources=Resources(**spec.get("resources", {})), state=AttemptState(row.state),
        permit=row.permit,
    )  # fmt: skip


def wishes(connection: Connection, site: str, agent: str) -> tuple[list[StopOrder], list[OutputWish]]:
    """The users' requests to attempts that an agent has."""
    rows = [(AttemptKey(run=row.run_id, attempt=row.number), row) for row in attempts.wished(connection, site, agent)]
    return (
        [StopOrder(key=key, reason=_why(row)) for key, row in rows if row.cancel_at is not None],
        [
            *(OutputWish(key=key, number=row.asked) for key, row in rows if row.asked > row.brought),
            *(
                OutputWish(key=key, number=row.asked_checkpoint, what=CHECKPOINTS)
                for key, row in rows
                if row.asked_checkpoint > row.brought_checkpoint
            ),
        ],
    )


def _why(row: AnyRow) -> Reason:
    return Reason.USER if row.stop_detail is None else Reason.EARLY_STOP
