"""A yard on each kind of store, with a clock that tests move, and an agent whose words tests choose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from runyard.model.resources import Capacity, Gpu
from runyard.model.roles import Caller, Role
from runyard.model.spec import RunSpec
from runyard.model.states import AttemptState
from runyard.model.wire import Claim, Hello, Report, SyncRequest, SyncResponse
from runyard.settings import Settings
from runyard.store import open_store
from runyard.yard import Yard

GB = 1 << 30


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Driver:
    """Speaks to the yard as people and as one agent do."""

    def __init__(self, yard: Yard, clock: Clock) -> None:
        self.yard = yard
        self.clock = clock
        self.alice = Caller(name="alice", role=Role.MEMBER)
        self.bob = Caller(name="bob", role=Role.MEMBER)
        self.admin = Caller(name="root", role=Role.ADMIN)
        self.incarnation = 0
        self.total = Capacity(cpus=2, memory=8 * GB)

    def submit(self, count: int = 1, caller: Caller | None = None, **fields: Any) -> list[int]:
        spec = RunSpec.parse({"command": ["true"], **fields})
        return [item.id for item in self.yard.submit(caller or self.alice, [spec] * count).result()]

    def hello(self, agent: str = "a1", total: Capacity | None = None, lease: int = 0) -> list[Claim]:
        self.total = total or self.total
        hello = Hello(
            site="local", agent=agent, node="node1", boot_id="boot", version="1", total=self.total, lease=lease
        )
        self.incarnation, claims = self.yard.hello(self.admin, hello).result()
        return claims

    def sync(
        self, *reports: Report, free: Capacity | None = None, ahead: int = 0, room: int | None = None, away: str = ""
    ) -> SyncResponse:
        request = SyncRequest(
            site="local", agent="a1", incarnation=self.incarnation, free=self.total if free is None else free,
            ahead=ahead, room=room, reports=list(reports), away=away,
        )  # fmt: skip
        return self.yard.sync(self.admin, request).result()

    def take(self, cpus: int = 2, **options: Any) -> list[int]:
        claims = self.sync(free=Capacity(cpus=cpus, memory=8 * GB, gpus=self.total.gpus), **options).claims
        return [claim.key.run for claim in claims]

    def state(self, run_id: int) -> tuple[str, str | None]:
        run = self.yard.get_run(run_id)
        return run["state"], run["reason"]

    def kinds(self, run_id: int) -> list[str]:
        return [event["kind"] for event in self.yard.events(run_id, 0, 100)]


STORES = ["sqlite", "sqlite-network", "postgresql"]
NOTHING = Capacity(cpus=0, memory=0)


def ended(claim: Claim, ending: str = "exit", **record: Any) -> Report:
    whole = {"ending": ending, "exit_code": 0, "signal": None, "tree_gone": True, "sizes": {}, **record}
    return Report(key=claim.key, state=AttemptState.ENDED, node="node1", started_at=1_000_000.0, record=whole)


def gone(claim: Claim, how: str = "the runner was killed") -> Report:
    return Report(key=claim.key, state=AttemptState.ENDED, gone=how)


def running(claim: Claim) -> Report:
    granted = {"cpus": 1, "memory": None, "gpus": []}
    return Report(key=claim.key, state=AttemptState.RUNNING, node="node1", granted=granted, started_at=1_000_001.0)


def gpus(*names: str) -> tuple[Gpu, ...]:
    return tuple(Gpu(uuid=f"GPU-{index}", type=name, memory=80 * GB) for index, name in enumerate(names))


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Tests of what SQLite promises without a write-ahead log, as on a network's file system, ask for `sqlite-network`
    too, by `pytest.mark.parametrize("store_url", STORES, indirect=True)`."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_store"))
    return f"sqlite:///{tmp_path}/yard.db"


@pytest.fixture
def driver(request: pytest.FixtureRequest, store_url: str, tmp_path: Path) -> Iterator[Driver]:
    clock = Clock()
    network = "sqlite-network" in request.node.name
    yard = Yard(Settings(home=tmp_path / "home"), open_store(store_url, network=network, clock=clock))
    yard.sites.ensure("local", "local").result()
    driver = Driver(yard, clock)
    driver.hello()
    yield driver
    yard.close()


def ids(claims: Sequence[Claim]) -> list[int]:
    return [claim.key.run for claim in claims]
