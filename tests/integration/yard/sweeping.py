"""A person with a sweep and an agent that runs it, in the words that tests choose."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from runyard.model.resources import Capacity
from runyard.model.sweep import SweepSpec
from runyard.model.wire import Claim
from tests.integration.yard.conftest import GB, Driver, ended, running

PLENTY = Capacity(cpus=1000, memory=8000 * GB)


class Field:
    """Many slots, and runs that say what they are told to."""

    def __init__(self, driver: Driver) -> None:
        self.driver, self.yard = driver, driver.yard
        self.written: dict[str, int] = {}
        driver.hello(total=PLENTY)

    def sweep(self, **document: Any) -> dict[str, Any]:
        return self.yard.sweeps.submit(self.driver.alice, _parse(document)).result()

    def plan(self, **document: Any) -> dict[str, Any]:
        return self.yard.sweeps.plan(self.driver.alice, _parse(document))

    def claims(self, most: int | None = None) -> list[Claim]:
        """Take what waits, and say that it runs."""
        claims = self.driver.sync(free=PLENTY, room=most).claims
        self.driver.sync(*map(running, claims), free=Capacity(cpus=0, memory=0))
        return claims

    def say(self, claim: Claim, *lines: dict[str, Any]) -> None:
        data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        offset = self.written.get(str(claim.key), 0)
        self.written[str(claim.key)] = self.yard.append(
            self.driver.admin, "local", "a1", self.driver.incarnation, claim.key, "metrics.jsonl", offset, data
        )

    def report(self, claim: Claim, step: int, value: float, name: str = "loss") -> None:
        self.say(claim, {"t": 1.0, "step": step, "m": {name: value}})
        self.look()

    def end(self, claim: Claim, ending: str = "exit", **record: Any) -> None:
        self.driver.sync(ended(claim, ending, **record), free=Capacity(cpus=0, memory=0))
        self.look()

    def finish(self, claim: Claim, value: float, step: int = 1) -> None:
        self.say(claim, {"t": 1.0, "step": step, "m": {"loss": value}})
        self.end(claim)

    def look(self) -> None:
        """What the loop that follows progress does."""
        while self.yard.metrics.tick() or self.yard.sweeps.tick():
            pass

    def run_all(self, objective: Callable[[dict[str, Any]], float]) -> int:
        """Until nothing waits; how many runs that took."""
        number = 0
        self.look()
        while claims := self.claims():
            for claim in claims:
                self.finish(claim, objective(claim.spec["params"]))
                number += 1
        return number

    def show(self, sweep: int = 1) -> dict[str, Any]:
        return self.yard.sweeps.get(sweep)

    def trials(self, sweep: int = 1) -> list[dict[str, Any]]:
        return self.yard.sweeps.trials(sweep, 0, 100_000)

    def kinds(self, sweep: int = 1) -> list[str]:
        return [decision["kind"] for decision in self.yard.sweeps.decisions(sweep, 0, 100_000)]


def _parse(document: dict[str, Any]) -> SweepSpec:
    return SweepSpec.parse({"command": ["train", "{lr}"], "space": {"lr": [0.1, 0.01]}, **document})
