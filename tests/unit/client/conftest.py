from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.unit.client.server import Handler, Server


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Handler], None]], Server]]:
    """`serve(answer)` starts a server; all of them are stopped after the test."""
    started: list[Server] = []

    def start(answer: Callable[[Handler], None]) -> Server:
        started.append(Server(answer))
        return started[-1]

    yield start
    for server in started:
        server.stop()
