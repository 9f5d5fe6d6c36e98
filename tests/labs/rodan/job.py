"""Rodan's job, as it asks for a training through the broker and waits for the models: with pika, its declares and its
properties to the letter."""

from __future__ import annotations

import base64
import json
import time
import uuid
from typing import Any

import pika

REQUESTS, RESULTS = "hpc-jobs", "hpc-results"

SETTINGS: dict[str, Any] = {
    "Maximum number of training epochs": 15,
    "Maximum number of samples per label": 10000,
    "Patch height": 256,
    "Patch width": 256,
    "Maximum time (D-HH:MM)": "0-06:00",
    "Maximum memory (MB)": 1024,
    "CPUs": 1,
    "Slurm Notification Email": "",
}
NAMED = ("Music Layer", "Staff Layer", "Text")


def inputs(paths: dict[str, str]) -> dict[str, str]:
    """By the files' old local names: `image`, `background`, `regions`, and layers with numbers or names."""
    ports = {"image": "Image", "background": "Background", "regions": "Selected Regions"}
    ports |= dict(zip(("music", "staff", "text"), NAMED, strict=True))
    ports |= {f"layer_{number}": f"rgba PNG - Layer {number}" for number in range(10)}
    return {ports[name]: path for name, path in paths.items()}


class RodanJobs:
    """One process of Rodan. Several jobs may wait at once, as in the real one, on one queue for all."""

    def __init__(self, url: str) -> None:
        parameters = pika.URLParameters(url)
        parameters.heartbeat = 0  # a test may be busy with other things for minutes
        self._connection = pika.BlockingConnection(parameters)
        self._channel = self._connection.channel()
        self._channel.confirm_delivery()
        self._channel.queue_declare(queue=REQUESTS)
        self._channel.queue_declare(queue=RESULTS)

    def ask(self, inputs: dict[str, str], **settings: Any) -> str:
        """Returns the correlation id; `settings` are added to the usual ones."""
        return self.send({"inputs": inputs, "settings": {**SETTINGS, **settings}})

    def send(self, body: Any, correlation_id: str = "") -> str:
        identity = correlation_id or str(uuid.uuid4())
        properties = pika.BasicProperties(  # type: ignore[no-untyped-call]
            reply_to=RESULTS, correlation_id=identity
        )
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._channel.basic_publish(exchange="", routing_key=REQUESTS, body=data, properties=properties)
        return identity

    def wait(self, correlation_id: str, timeout_s: float = 120) -> dict[str, Any]:
        """The reply; those of others go back to the queue, again and again, as long as we listen."""
        deadline = time.monotonic() + timeout_s
        for method, properties, body in self._channel.consume(RESULTS, inactivity_timeout=0.1):
            if method is not None and properties is not None and properties.correlation_id == correlation_id:
                self._channel.basic_ack(method.delivery_tag)
                self._channel.cancel()
                return dict(json.loads(body or b""))
            if method is not None:
                self._channel.basic_nack(method.delivery_tag, requeue=True)
                time.sleep(0.02)
            if time.monotonic() > deadline:
                break
        self._channel.cancel()
        raise AssertionError(f"no reply to {correlation_id} within {timeout_s:g} s")

    def waiting(self) -> int:
        """Requests that nobody has taken."""
        return int(self._channel.queue_declare(queue=REQUESTS).method.message_count)

    def empty(self) -> None:
        for queue in (REQUESTS, RESULTS):
            self._channel.queue_purge(queue)

    def close(self) -> None:
        self._connection.close()


def models(reply: dict[str, Any]) -> dict[str, bytes]:
    """As Rodan decodes them."""
    assert "error" not in reply, reply["error"]
    return {port: base64.decodebytes(text.encode()) for port, text in reply.items()}
