from __future__ import annotations

import os
import threading
import time

from runyard.agent.wake import Wake


def test_a_ring_before_the_sleep_counts() -> None:
    wake = Wake()
    wake.ring()
    wake.ring()
    begun = time.monotonic()
    wake.sleep(60)
    assert time.monotonic() - begun < 30
    wake.close()


def test_rings_are_never_lost() -> None:
    """However ring and sleep meet, the sleeper sees the last word."""
    wake, said = Wake(), [0]
    rounds = 2000

    def speak() -> None:
        for number in range(1, rounds + 1):
            said[0] = number
            wake.ring()

    speaker = threading.Thread(target=speak)
    speaker.start()
    deadline = time.monotonic() + 60
    while said[0] < rounds and time.monotonic() < deadline:
        wake.sleep(60)
    speaker.join()
    assert time.monotonic() < deadline
    wake.close()


def test_other_descriptors_wake_too() -> None:
    wake = Wake()
    reader, writer = os.pipe()
    os.write(writer, b"x")
    begun = time.monotonic()
    wake.sleep(60, [reader])
    assert time.monotonic() - begun < 30
    for descriptor in (reader, writer):
        os.close(descriptor)
    wake.close()


def test_a_ring_after_the_close_touches_nobody_elses_file() -> None:
    wake = Wake()
    wake.close()
    pipes = [os.pipe() for _ in range(4)]  # they get the numbers that were freed
    wake.ring()
    for reader, writer in pipes:
        os.set_blocking(reader, False)
        os.close(writer)
        assert os.read(reader, 10) == b""
        os.close(reader)
