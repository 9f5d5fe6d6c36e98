"""A program that asked through the broker and gets a large file: `far_caller.py BROKER QUEUE PATH SIZE`.

A reply of runyard has a link, which is followed. Anything else is a piece of the file in base64; more of them follow
until it has its size. Prints `ready` when it listens, and when the file is there
`{"ended": monotonic time, "peak": bytes of memory}`.
"""

from __future__ import annotations

import base64
import json
import shutil
import sys
import time
import urllib.request
from pathlib import Path
from typing import IO, Any

import pika

PIECE = "piece"  # the type of messages that are not from runyard
CHUNK = 1 << 20


def main(broker: str, queue: str, path: str, size: str) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(broker))
    channel = connection.channel()
    channel.queue_declare(queue, durable=True)
    channel.basic_qos(prefetch_count=1)
    print("ready", flush=True)
    with open(path, "wb") as file:
        while file.tell() < int(size):
            method, properties, body = next(channel.consume(queue))
            assert method is not None and body is not None, "there is no limit to its patience"
            receive(properties, body, file)
            channel.basic_ack(method.delivery_tag)
    print(json.dumps({"ended": time.monotonic(), "peak": peak("self")}), flush=True)
    connection.close()


def receive(properties: Any, body: bytes, file: IO[bytes]) -> None:
    """Add what a message brings to the file."""
    if properties.type == PIECE:
        file.write(base64.b64decode(body))
        return
    (output,) = json.loads(body)["outputs"]
    with urllib.request.urlopen(output["url"]) as answer:
        shutil.copyfileobj(answer, file, CHUNK)


def peak(process: int | str) -> int:
    """The most memory that a process has had at once, in bytes."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main(*sys.argv[1:])
