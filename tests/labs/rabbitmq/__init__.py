"""A private RabbitMQ on this machine: one node, or several that form a cluster."""

from tests.labs.rabbitmq.configuration import Options
from tests.labs.rabbitmq.lab import RabbitLab

__all__ = ["Options", "RabbitLab"]
