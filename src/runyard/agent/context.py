"""What every part of an agent may need: the site, the link to the yard, and the attempts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runyard.agent.attempts import Book
from runyard.agent.errands import Errands
from runyard.agent.link import Link
from runyard.backends.base import Backend, Distant, Queueing
from runyard.hosts.base import Host


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    site: str
    backend: Backend
    link: Link
    errands: Errands
    backend_errands: Errands  # for calls of the backend: only schedulers block
    book: Book
    directory: Path  # the agent's own, on the machine it runs on
    runs: str  # that of the attempts, where they execute
    clock: Callable[[], float]

    @property
    def host(self) -> Host:
        return self.backend.host

    @property
    def queue(self) -> Queueing | None:
        return self.backend if isinstance(self.backend, Queueing) else None

    @property
    def distant(self) -> Distant | None:
        return self.backend if isinstance(self.backend, Distant) else None
