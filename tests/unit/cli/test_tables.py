"""Tables on a narrow terminal: what matters is not cut away, and what is not known is not shown as a number."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console
from rich.table import Table

from runyard.cli.commands import events, site
from runyard.cli.show import site_page, tables

FAILED: dict[str, Any] = {
    "id": 7, "state": "failed", "reason": "staging", "detail": "/scratch/words does not exist at this site",
    "name": "a probe of which the name is long", "project": "a-project-with-a-long-name", "site": "boxes",
    "resources": {"cpus": 1}, "created_at": "2026-01-01T00:00:00.000Z", "started_at": None, "ended_at": None,
}  # fmt: skip
UNSERVED: dict[str, Any] = {"name": "cedar", "kind": "slurm", "drained": False, "agents": [], "active_runs": 0}


def drawn(table: Table) -> str:
    console = Console(width=80, file=io.StringIO(), color_system=None)
    console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_a_long_project_leaves_room_for_the_reason() -> None:
    assert "staging: /scr" in drawn(tables.build(tables.RUN_COLUMNS, [FAILED]))


def test_events_are_told_whole() -> None:
    message = "staging: there is no conda environment 'nets' at this site; no conda was found there"
    shown = drawn(events.table([{"at": FAILED["created_at"], "attempt": 1, "kind": "failed", "message": message}]))
    assert [word for word in message.split() if word not in shown.split()] == []


def test_slots_that_nobody_knows_are_no_numbers() -> None:
    agent = {
        "state": "alive",
        "free": {"cpus": 1, "memory": 0, "gpus": 0},
        "total": {"cpus": 2, "memory": 0, "gpus": 0},
    }
    local = {**UNSERVED, "name": "local", "agents": [agent]}
    assert "CPUS" not in drawn(site.table([UNSERVED]))
    header, unserved, served = drawn(site.table([UNSERVED, local])).splitlines()
    assert header.split() == ["SITE", "KIND", "STATE", "CPUS", "FREE", "RUNS"]
    assert unserved.split() == ["cedar", "slurm", "no", "agent", "-", "0"]
    assert served.split()[3:6] == ["1", "of", "2"]


def test_a_node_tells_what_its_cache_has_and_may_have() -> None:
    disk = {"path": "/runs", "free": 412 << 30, "kept": 0, "cache": 3 << 30, "cache_limit": 20 << 30}
    capacity = {"cpus": 2, "memory": 8 << 30, "gpus": []}
    node = {
        "name": "hoff", "state": "alive", "since": None, "total": capacity, "free": capacity, "disk": disk, "runs": [],
        "labels": [], "limits": {},
    }  # fmt: skip
    shown = drawn(site_page._nodes([node]))
    assert "CACHE" in shown and "3.0G/20.0G" in shown
    assert "CACHE" not in drawn(site_page._nodes([{**node, "disk": {**disk, "cache": None}}]))
