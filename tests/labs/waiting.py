"""Waiting for something that happens elsewhere, with a limit and a sentence."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable
from typing import TypeVar

from tests.labs.daemons import LabError

T = TypeVar("T")


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
    """Below the range from which the kernel takes ports for outgoing connections: those are free only until used."""
    found: set[int] = set()
    while len(found) < count:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("0.0.0.0", port))
            except OSError:
                continue
        found.add(port)
    return sorted(found)
