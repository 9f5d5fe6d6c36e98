"""Bridges to other people's systems, as the configuration names them."""

from __future__ import annotations

from dataclasses import dataclass

from runyard import errors
from runyard.model import fields, spec_values
from runyard.model.declaration import Declared, field, read
from runyard.model.intake import Intake, queue_name
from runyard.model.json_schema import text
from runyard.model.values import Checked, Duration, Size, Text

MEBIBYTE = 1 << 20
RODAN = "rodan"


@dataclass(frozen=True, kw_only=True, slots=True)
class RodanBridge(Declared):
    """Build it with `parse_table`, which checks everything that came from outside."""

    credentials: str = field(Text(4096), default="", help="A file with the six variables; empty: the environment")
    recipe: str = field(spec_values.NAME, default=RODAN)
    queue: str = field(Checked(queue_name, text()), default="hpc-jobs")
    input_limit: int = field(Size(), default=1024 * MEBIBYTE, help="The largest input")
    # No RabbitMQ takes more, and most take less.
    reply_limit: int = field(Size(), default=512 * MEBIBYTE, help="The largest reply")
    patience: int = field(
        Duration(), default=600, help="How long inputs may be out of reach before the request is answered with an error"
    )

    @classmethod
    def parse_table(cls, name: str, value: object) -> RodanBridge:
        if name != RODAN:
            raise errors.InvalidInput(f"bridge.{name}: there is no such bridge", fields.nearest(name, [RODAN]))
        return cls(**read(cls, value, f"bridge.{name}"))

    def intake(self) -> Intake:
        """The queue as Rodan declares it: the broker refuses any other flags."""
        return Intake(
            name=RODAN, queue=self.queue, format=RODAN, recipe=self.recipe, caller=RODAN, durable=False,
            reply_limit=self.reply_limit,
        )  # fmt: skip
