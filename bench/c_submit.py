"""(c) Durable submission: 10,000 runs in one call, and single POSTs, against plain sqlite3 with one row a run."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from bench import harness, posting
from bench.harness import Result
from tests.labs.yard import Yard

MANY, SINGLES, CONNECTIONS = 10_000, 3_000, 32
SPEC = {"command": ["/bin/true"], "cwd": "/", "params": {"lr": 0.1}, "resources": {"cpus": 1}}


def measure(place: Path) -> Iterator[Result]:
    with harness.yard(place, cpus=1) as yard:
        yard.client().submit(
            command=["sleep", "1000"], cwd="/", priority=1000
        )  # takes the slot: the others stay queued
        once = harness.interleaved(
            3, {"runyard": lambda: submit_many(yard), "sqlite3": lambda: insert(place, MANY, together=True)}
        )
        each = harness.interleaved(
            3,
            {
                "runyard": lambda: posting.rate(singles(yard), SINGLES, CONNECTIONS),
                "sqlite3": lambda: SINGLES / insert(place, SINGLES, together=False),
            },
        )
    yield Result(
        letter="c",
        what="10,000 runs in one call, durable",
        value=once["runyard"],
        against="10,000 rows in one sqlite3 commit",
        alternative=once["sqlite3"],
        unit="s",
        target="under 3 s",
        met=once["runyard"] < 3,
    )
    yield Result(
        letter="c",
        what=f"single durable POSTs, {CONNECTIONS} connections",
        value=each["runyard"],
        against="one sqlite3 commit a row",
        alternative=each["sqlite3"],
        unit="runs/s",
        target="at least 1,000/s",
        met=each["runyard"] >= 1000,
    )


def submit_many(yard: Yard) -> float:
    client = yard.client()
    begin = time.perf_counter()
    runs = client.submit_many([SPEC] * MANY)
    taken = time.perf_counter() - begin
    if len({run.id for run in runs}) != MANY:
        raise SystemExit("not every run got an id of its own")
    return taken


def singles(yard: Yard) -> posting.Target:
    return posting.Target(url=yard.url, path="/api/v1/runs", body=SPEC, token=yard.token, status=201)


def insert(place: Path, count: int, *, together: bool) -> float:
    """The least that durability costs: one JSON text a run, WAL, synchronous FULL."""
    path = place / "plain.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE runs (id INTEGER PRIMARY KEY, spec TEXT)"
    )
    text = json.dumps(SPEC)
    begin = time.perf_counter()
    if together:
        connection.execute("BEGIN IMMEDIATE")
    for _ in range(count):
        connection.execute("INSERT INTO runs (spec) VALUES (?)", (text,))
    if together:
        connection.execute("COMMIT")
    taken = time.perf_counter() - begin
    connection.close()
    path.unlink()
    return taken
