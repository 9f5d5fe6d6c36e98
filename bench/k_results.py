"""(k) A result of 500 MB to a program that asked through the broker: by an expiring link, and as base64 in messages.

From the moment when the job has written it to the moment when the caller has all of it in a file. The memory is the
most that each process had: who sends it (the yard with its agent; a job with pika), the broker, the caller.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench import broker_sides, harness
from bench.harness import Result
from bench.result_ways import ByLink, ByMessages, Taken

MEGABYTES, REPETITIONS = 500, 3
# RabbitMQ takes no larger message unless it is told to: 16 MiB since 4.0, and never more than 512 MiB.
LARGEST = 128 << 20
# The lab's own is less than such messages need: the sender would be made to wait.
MEMORY = {"vm_memory_high_watermark.absolute": "4GB"}
TOLD = {
    "seconds": ("time", "s"),
    "sender": ("most memory of who sends it", "MB"),
    "broker": ("most memory of the broker", "MB"),
    "caller": ("most memory of the caller", "MB"),
}


def measure(place: Path) -> Iterator[Result]:
    if harness.lacks("k", "rabbitmq"):
        return
    result = _write_result(place)
    with ExitStack() as stack:
        # Each has a broker of its own: what large messages took is not given back soon.
        first, second = (stack.enter_context(broker_sides.broker(place, **MEMORY)) for _ in range(2))
        link = stack.enter_context(ByLink(place, first, result))
        messages = ByMessages(place, second, result, LARGEST)
        pairs = [(link.take(), messages.take()) for _ in range(REPETITIONS)]
        against = f"base64 in {messages.count} messages"
        in_one = f"base64 in one message: {messages.in_one()}"
    yield from (_result(pairs, name, against) for name in TOLD)
    print(f"    {in_one}", flush=True)


def _write_result(place: Path) -> Path:
    path = place / "result.bin"
    with path.open("wb") as file:
        for _ in range(MEGABYTES):
            file.write(os.urandom(10**6))
    return path


def _result(pairs: list[tuple[Taken, Taken]], name: str, against: str) -> Result:
    what, unit = TOLD[name]
    ours, theirs = (statistics.median(getattr(pair[side], name) for pair in pairs) for side in (0, 1))
    return Result(
        letter="k",
        what=f"{MEGABYTES} MB from a job to a caller: {what}, median of {len(pairs)}",
        value=ours,
        against=against,
        alternative=theirs,
        unit=unit,
    )
