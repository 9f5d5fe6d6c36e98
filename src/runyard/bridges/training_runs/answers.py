"""The answers of the old server, with its names and shapes and with true numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from email.utils import formatdate
from typing import Any

Run = Mapping[str, Any]


def accepted(body: Mapping[str, Any], now: float, url: str, ids: Sequence[int], *, group: bool) -> dict[str, Any]:
    """What a request is answered with: the old fields, then the new ones."""
    said = {"processed_request": formatdate(now, usegmt=True), "run_request": body}
    return {**said, **({"ids": list(ids)} if group else {"id": ids[0]}), "url": url}


def status(
    workers: Mapping[str, Sequence[str]],
    queued: Sequence[Run],
    scheduled: Sequence[Run],
    active: Mapping[str, Sequence[Run]],
    counts: Mapping[str, int],
    shows: Callable[[Run], bool],
) -> dict[str, Any]:
    """`/status` as Celery's inspection gave it: lists by worker, or null if no worker answers and there is no task.

    A waiting task belongs to no worker yet, so it is listed under the site that it waits for. `counts` is new, because
    long lists are shortened. If `shows` is false, a task is shown without its arguments.
    """
    idle: dict[str, list[Any]] | None = {worker: [] for worker in workers} or None
    working = {worker: [_task(run, worker, shows(run)) for run in found] for worker, found in active.items()}
    return {
        "queued_tasks": _by_place(queued, shows) or idle,
        "registered_workers": {worker: list(names) for worker, names in workers.items()} or None,
        "active_tasks": {**(idle or {}), **working} or None,
        "scheduled_tasks": _by_place(scheduled, shows) or idle,
        "counts": dict(counts),
    }


def _by_place(runs: Sequence[Run], shows: Callable[[Run], bool]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        place = f"runyard@{run['site'] or 'any'}"
        found.setdefault(place, []).append(_task(run, None, shows(run)))
    return found


def _task(run: Run, worker: str | None, shown: bool) -> dict[str, Any]:
    name = run["recipe"] or "run"
    return {
        "id": str(run["id"]),
        "name": name,
        "args": [run["params"]] if shown else [],
        "kwargs": {},
        "type": name,
        "hostname": worker,
        "time_start": run["started"],
        "acknowledged": True,
        "delivery_info": {
            "exchange": "",
            "routing_key": run["site"] or "any",
            "priority": run["priority"],
            "redelivered": run["attempt"] > 1,
        },
        "worker_pid": None,
    }
