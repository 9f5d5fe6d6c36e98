"""(e) A page of `ls` with 1,000,000 stored runs, against the same page with 10,000."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from bench import harness
from bench.harness import Result
from runyard import Client
from runyard.store import counters, open_store, runs
from tests.labs.yard import Yard

FEW, MANY, CHUNK, PAGES = 10_000, 1_000_000, 20_000, 400
FILTERS: list[dict[str, str]] = [{}, {"state": "failed"}, {"project": "p7"}, {"state": "cancelled", "project": "p9"}]
STATES = ["succeeded"] * 8 + ["failed", "cancelled"]


def measure(place: Path) -> Iterator[Result]:
    with ExitStack() as stack:
        yards = {count: stack.enter_context(harness.yard(place, cpus=1)) for count in (FEW, MANY)}
        for count, yard in yards.items():
            fill(yard, count)
        taken = pages({count: yard.client() for count, yard in yards.items()})
    few, many = (1000 * harness.percentile(taken[count], 0.95) for count in (FEW, MANY))
    yield Result(
        letter="e",
        what="a page of `ls` with 1,000,000 runs, 95th percentile",
        value=many,
        against="with 10,000 runs",
        alternative=few,
        unit="ms",
        target="under 50 ms and at most 2 times",
        met=many < 50 and many <= 2 * few,
    )


def fill(yard: Yard, count: int) -> None:
    """Copies of one run that really ran, written through the store while the yard is down."""
    yard.client().submit(command=["/bin/true"], cwd="/", params={"lr": 0.1}, project="p0").wait()
    yard.stop()
    store = open_store(f"sqlite:///{yard.home / 'yard.db'}")
    with store.read() as connection:
        model = dict(runs.get(connection, 1)._mapping)  # type: ignore[union-attr]
    for _ in range(0, count, CHUNK):
        store.write(lambda connection: copy(connection, model, min(CHUNK, count))).result()
    store.close()
    yard.start()


def copy(connection: Connection, model: dict[str, Any], count: int) -> None:
    first = counters.take(connection, "runs", count)
    rows = []
    for number in range(first, first + count):
        project, state = f"p{number % 20}", STATES[number % len(STATES)]
        rows.append({**model, "id": number, "project": project, "name": f"run {number}", "state": state})
    runs.insert_runs(connection, rows)


def pages(clients: dict[int, Client]) -> dict[int, list[float]]:
    """Seconds per page, the stores by turns: new and deep pages, all runs or by state and project."""
    chance = random.Random(1)
    taken: dict[int, list[float]] = {count: [] for count in clients}
    for _ in range(PAGES):
        depth, filters = chance.choice([None, chance.random()]), chance.choice(FILTERS)
        for count, client in clients.items():
            query = {**filters, "limit": 50, "before": None if depth is None else 2000 + int(depth * (count - 2000))}
            begin = time.perf_counter()
            answer = client.call("GET", "/runs", query=query)
            taken[count].append(time.perf_counter() - begin)
            if len(answer["runs"]) != 50:
                raise SystemExit(f"a page of {count} runs had only {len(answer['runs'])} rows: {query}")
    return taken
