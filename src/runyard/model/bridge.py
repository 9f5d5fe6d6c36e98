"""Bridges to other people's systems, as the configuration names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runyard import errors
from runyard.model import fields, spec, units
from runyard.model.intake import Intake, queue_name

MEBIBYTE = 1 << 20
RODAN = "rodan"
FIELDS = ("credentials", "recipe", "queue", "input_limit", "reply_limit", "patience")


@dataclass(frozen=True, kw_only=True, slots=True)
class RodanBridge:
    """Build it with `parse`, which checks everything that came from outside."""

    credentials: str = ""  # a file with the six variables; '': they are in the environment
    recipe: str = RODAN
    queue: str = "hpc-jobs"
    input_limit: int = 1024 * MEBIBYTE  # bytes of one input
    reply_limit: int = 512 * MEBIBYTE  # bytes of one reply: no RabbitMQ takes more, and most take less
    patience: int = 600  # seconds that inputs may be out of reach before the request is answered with an error

    @classmethod
    def parse(cls, name: str, value: object) -> RodanBridge:
        if name != RODAN:
            raise errors.InvalidInput(f"bridge.{name}: there is no such bridge", fields.nearest(name, [RODAN]))
        given = fields.mapping(value, f"bridge.{name}", FIELDS)
        return cls(**{key: _CHECKS[key](item, f"bridge.{name}.{key}") for key, item in given.items()})

    def intake(self) -> Intake:
        """The queue as Rodan declares it: the broker refuses any other flags."""
        return Intake(
            name=RODAN, queue=self.queue, format=RODAN, recipe=self.recipe, caller=RODAN, durable=False,
            reply_limit=self.reply_limit,
        )  # fmt: skip


_CHECKS: dict[str, Any] = {
    "credentials": lambda value, where: fields.text(value, where, 4096),
    "recipe": spec.name_text,
    "queue": queue_name,
    "input_limit": units.parse_size,
    "reply_limit": units.parse_size,
    "patience": units.parse_duration,
}
