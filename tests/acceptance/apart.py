"""A yard with PostgreSQL, RabbitMQ and an agent in a process of its own, that tests use like one without."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from tests.acceptance.pool import SITE, Pool
from tests.acceptance.witness import until
from tests.labs import waiting
from tests.labs.yard import Yard

AGENT = "one"


class Apart(Yard):
    """Runs that name no site go to the agent; it lives and dies with the yard, as the embedded one does."""

    def __init__(self, *, cpus: int, store: str, broker: str, **settings: Any) -> None:
        port = waiting.free_ports(1)[0]
        super().__init__(cpus=cpus, store=store, broker=broker, local_site="named", port=port, **settings)
        self._cpus = cpus
        self._pool: Pool | None = None
        self._agent = contextlib.ExitStack()

    @property
    def runs(self) -> Path:
        return self.home / AGENT / "site" / "runs"

    def start(self, *program: str) -> Apart:
        super().start(*program)
        self._pool = self._pool or Pool(self)
        process = self._agent.enter_context(self._pool.agent(AGENT, cpus=self._cpus))
        self._kill_agent = process.kill
        until(self._is_served, what="an agent at its work")
        return self

    def kill9(self) -> None:
        self._kill_agent()
        self._agent.close()
        super().kill9()

    def stop(self) -> None:
        self._agent.close()
        super().stop()

    def remove(self) -> None:
        self._agent.close()
        super().remove()

    def _is_served(self) -> bool:
        return any(agent["site"] == SITE and agent["state"] == "alive" for agent in self.client().agents())
