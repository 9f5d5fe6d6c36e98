"""RabbitMQ: one connection with a thread of its own, and publishers and consumers on it. Needs pika.

Imported only where a broker is configured.
"""

from __future__ import annotations

from runyard import errors

try:
    import pika as _pika  # noqa: F401
except ImportError:
    raise errors.ConfigError(
        "a message broker is configured, and the library for it is missing", "pip install 'runyard[rabbitmq]'"
    ) from None

from runyard.broker.amqp import headers as _headers  # noqa: F401  # how those of other programs are read
from runyard.broker.amqp.connection import Connection
from runyard.broker.amqp.consumer import Consumer, Delivery
from runyard.broker.amqp.dead_letters import DeadLetters
from runyard.broker.amqp.publisher import Message, Publisher
from runyard.broker.amqp.queues import Queue

__all__ = ["Connection", "Consumer", "DeadLetters", "Delivery", "Message", "Publisher", "Queue"]
