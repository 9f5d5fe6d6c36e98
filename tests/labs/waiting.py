"""Waiting for something that happens elsewhere, with a limit and a sentence."""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable
from typing import TypeVar

from tests.labs.daemons import LabError

T = TypeVar("T")
_GIVEN: set[int] = set()  # ports


def until(condition: Callable[[], T], what: str, *, timeout_s: float = 90, every_s: float = 0.02) -> T:
    """The first answer that is true; `what` completes the sentence "… did not happen"."""
    deadline = time.monotonic() + timeout_s
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise LabError(f"{what}: not within {timeout_s:g} s")
        time.sleep(every_s)
    return answer


def accepts(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), 1).close()
    except OSError:
        return False
    return True


def free_ports(count: int) -> list[int]:
    """That are free, and that nobody else is given in this test run: who asks uses them later, and may let go of them
    for a while."""
    found: set[int] = set()
    while len(found) < count:
        port = random.choice(_own_ports())
        if port not in _GIVEN and _is_free(port):
            found.add(port)
            _GIVEN.add(port)
    return sorted(found)


def _own_ports() -> range:
    """Of this worker, below the range from which the kernel takes ports for outgoing connections: those are free only
    until used."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return range(20000, 32000)[number % workers :: workers]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True
