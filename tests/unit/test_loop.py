"""The loop that the background parts of a yard share."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from runyard.loop import Loop

DEADLINE_S = 60.0


class Counter(Loop):
    again_s = 3600.0  # nothing here comes of patience

    def __init__(self) -> None:
        self.passes: queue.Queue[int] = queue.Queue()
        self.more = 0  # passes that say so
        self.meanwhile: Callable[[], None] = lambda: None
        self._count = 0
        super().__init__("counter")

    def tick(self) -> bool:
        self._count += 1
        self.passes.put(self._count)
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        self.more -= 1
        return self.more >= 0

    def reached(self, count: int) -> bool:
        return self.passes.get(timeout=DEADLINE_S) == count


@pytest.fixture
def start() -> Iterator[Callable[[Counter], threading.Thread]]:
    stop, threads = threading.Event(), []

    def begin(loop: Counter) -> threading.Thread:
        thread = threading.Thread(target=loop, args=(stop,), daemon=True)
        thread.start()
        threads.append(thread)
        return thread

    yield begin
    stop.set()
    for thread in threads:
        thread.join(DEADLINE_S)
        assert not thread.is_alive(), "it sleeps through a stop"


def test_it_looks_at_the_beginning_and_with_every_ring(start: Callable[[Counter], threading.Thread]) -> None:
    loop = Counter()
    start(loop)
    assert loop.reached(1)
    loop.ring()
    assert loop.reached(2)


def test_it_goes_on_at_once_while_there_is_more(start: Callable[[Counter], threading.Thread]) -> None:
    loop = Counter()
    loop.more = 3
    start(loop)
    assert all(loop.reached(count) for count in (1, 2, 3, 4))


def test_a_ring_during_a_pass_means_another_one(start: Callable[[Counter], threading.Thread]) -> None:
    loop = Counter()
    loop.meanwhile = loop.ring
    start(loop)
    assert loop.reached(1)
    assert loop.reached(2)


def test_it_looks_without_a_ring_too(start: Callable[[Counter], threading.Thread]) -> None:
    loop = Counter()
    loop.again_s = 0.01
    start(loop)
    assert loop.reached(1)
    assert loop.reached(2)


def test_a_pass_that_fails_leaves_no_thread_behind() -> None:
    class Failing(Loop):
        def tick(self) -> bool:
            raise OSError("no")

    stop = threading.Event()
    for _ in range(3):  # as often as it is started again
        with pytest.raises(OSError, match="no"):
            Failing("failing")(stop)
    deadline = time.monotonic() + DEADLINE_S
    while any(thread.name == "failing-stop" for thread in threading.enumerate()):
        assert time.monotonic() < deadline, "they wait for the stop"
        time.sleep(0.05)
