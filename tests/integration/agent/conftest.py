"""Site directories with real runners, and no zygote left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard.agent.agent import Agent
from runyard.agent.bring.web_files import NOTHING, WebFetcher
from runyard.agent.errands import Errands, InlineErrands
from runyard.backends.base import Backend
from runyard.backends.local import LocalBackend
from runyard.model.resources import Capacity, Gpu
from runyard.model.site import SiteSpec
from runyard.model.wire import AttemptKey
from runyard.runner import json_files, leftovers, tree, zygote_link
from runyard.testing.backend_contract import PATIENCE_S, until
from tests.integration.agent.fake_yard import FakeYard

WAIT = "until [ -e go-on ]; do sleep 0.05; done"
"""For a run's script: it waits, however long its test takes, until it is let go on."""


@pytest.fixture
def site() -> Iterator[Path]:
    """A site's directory. The zygote that a test started there ends with it."""
    with tempfile.TemporaryDirectory(prefix="ry-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)
        dismiss_zygote(Path(directory))
        for attempt, _, files in os.walk(directory):  # which passes over what goes meanwhile
            if "spec.json" in files:
                end_runner(Path(attempt))


def end_runner(attempt: Path) -> None:
    """What a failed test left running."""
    runner = json_files.read(f"{attempt}/started/runner.json")
    if runner and tree.is_alive(runner["pid"], runner["start_time"]):
        with contextlib.suppress(ProcessLookupError):  # it may end by itself just now
            os.kill(runner["pid"], signal.SIGKILL)
        leftovers.sweep(str(attempt))


def dismiss_zygote(directory: Path) -> None:
    with contextlib.suppress(OSError):
        connected = zygote_link.connect(directory)
        connected.quit()
        connected.close()


class Crew:
    """Agents of one site, one after the other, with a yard in memory. Nothing runs in the background: tests tick."""

    def __init__(self, site: Path) -> None:
        self.site = site
        self.yard = FakeYard()
        self._agents: list[Agent] = []

    def agent(
        self, *, cpus: int = 2, gpus: tuple[Gpu, ...] = (), backend: Backend | None = None,
        errands: Errands | None = None, described: SiteSpec | None = None, fetcher: WebFetcher = NOTHING,
    ) -> Agent:  # fmt: skip
        """A fresh one, as after a restart. The one before it is killed: it is never asked anything again."""
        total = Capacity(cpus=cpus, memory=1 << 40, gpus=gpus)
        made = Agent(
            self.yard, backend or LocalBackend(self.site), self.site, "local", total,
            errands=errands or InlineErrands(), described=described, fetcher=fetcher,
        )  # fmt: skip
        self._agents.append(made)
        return made

    def drive(self, agent: Agent, condition: Callable[[], object], what: str, patience: float = PATIENCE_S) -> None:
        """Tick until something is true."""

        def tick() -> object:
            agent.wake()
            agent.tick()
            return condition()

        until(tick, what, patience)

    def drive_a_short_run(self, agent: Agent) -> None:
        """So that the agent takes work ahead; where the machine is busy not every run is short."""

        def one_more() -> bool:
            key = self.yard.submit(["true"])
            self.drive(agent, lambda: key in self.yard.ended, "a short run")
            return agent._pace.ahead() > 0

        until(one_more, "runs so short that work is taken ahead")

    def let_go_on(self, key: AttemptKey) -> None:
        """For a run that waits by `WAIT`."""
        (self.directory(key) / "work" / "go-on").touch()

    def directory(self, key: AttemptKey) -> Path:
        return self.site / "runs" / str(key.run) / f"a{key.attempt}"

    def runner(self, key: AttemptKey) -> dict[str, Any]:
        found: dict[str, Any] = json_files.read(f"{self.directory(key)}/started/runner.json")
        return found

    def close(self) -> None:
        for agent in self._agents:
            agent.close()


@pytest.fixture
def crew(site: Path) -> Iterator[Crew]:
    made = Crew(site)
    yield made
    made.close()
