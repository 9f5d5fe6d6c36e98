"""A job that sends its result through the broker: `base64_sender.py BROKER QUEUE PATH LARGEST`.

As much of it as a message of LARGEST bytes takes in base64, and the rest in further ones.
Prints `{"begun": monotonic time, "peak": bytes of memory}` when the broker has confirmed all of it.
"""

from __future__ import annotations

import base64
import json
import sys
import time

import pika

from bench.far_caller import PIECE, peak


def main(broker: str, queue: str, path: str, largest: str) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(broker))
    channel = connection.channel()
    channel.confirm_delivery()
    begun = time.monotonic()
    with open(path, "rb") as file:
        while piece := file.read(int(largest) // 4 * 3):
            properties = pika.BasicProperties(type=PIECE)  # type: ignore[no-untyped-call]
            channel.basic_publish("", queue, base64.b64encode(piece), properties)
    print(json.dumps({"begun": begun, "peak": peak("self")}), flush=True)
    connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
