"""An intake: a queue of the broker from which other programs' requests are taken, and the recipe that they start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runyard import errors
from runyard.model import fields, spec_values, template
from runyard.model.declaration import Declared, field, read
from runyard.model.json_schema import ANYTHING, text
from runyard.model.values import Checked, Duration, Flag, Size, Text, Whole

MEBIBYTE = 1 << 20
FORMATS_BY_NAME = ("tasks", "celery")  # queues of these names speak the format of the same name
MOST_PREFETCHED = 1000
QUEUE_NAME_LIMIT = 250  # bytes: AMQP allows 255, and what cannot be used goes to a queue of the name with .dead
PATH = Text(4096, empty=True)


def queue_name(value: object, where: str) -> str:
    name = fields.text(value, where, QUEUE_NAME_LIMIT)
    if len(name.encode()) > QUEUE_NAME_LIMIT:
        raise errors.InvalidInput(f"{where}: longer than {QUEUE_NAME_LIMIT} bytes", "choose a shorter name")
    if name.startswith("amq."):
        raise errors.InvalidInput(f"{where}: names that begin with amq. belong to the broker", "choose another one")
    return name


def _params(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise errors.InvalidInput(f"{where}: must be a table of parameters and where in the body they are")
    return {fields.text(name, where, 200): fields.text(path, f"{where}.{name}", 200) for name, path in value.items()}


def _arguments(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(item, (str, int, bool)) for item in value.values()):
        raise errors.InvalidInput(f"{where}: must be a table of texts, numbers and yes or no", "such as x-queue-type")
    return dict(value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Intake(Declared):
    """Build it with `parse_table`, which checks everything that came from outside."""

    name: str  # of its table in the configuration; requests are identified by it
    queue: str = field(
        Checked(queue_name, text()), default="", help="Queue of the broker; without it, the table's name"
    )
    format: str = field(Text(100), default="tasks", help="How requests are written")
    recipe: str | None = field(spec_values.NAME, default=None, help="The recipe to start; without it the default one")
    caller: str = field(spec_values.NAME, default="", help="The owner of the runs; without it intake-NAME")
    params: dict[str, str] = field(
        Checked(_params, ANYTHING), make=dict, help="Where in the body each parameter is; none: the body itself"
    )
    durable: bool = field(Flag(), default=True)
    auto_delete: bool = field(Flag(), default=False)
    arguments: dict[str, Any] = field(Checked(_arguments, ANYTHING), make=dict, help="Arguments of the queue")
    passive: bool = field(Flag(), default=False, help="Take the queue as it is, and declare nothing")
    prefetch: int = field(Whole(1, MOST_PREFETCHED), default=20)
    # What RabbitMQ 4 accepts unless it is configured otherwise.
    reply_limit: int = field(Size(), default=16 * MEBIBYTE, help="The largest reply")
    link_time: int = field(Duration(), default=7 * 86400, help="How long a link to a file is valid")
    keep_trying: bool = field(
        Flag(), default=True, help="False: a reply queue that is not there means that no program waits"
    )
    broker: str = field(PATH, default="", secret=True, help="Its address; empty: that of the yard")
    broker_password_file: str = field(PATH, default="")
    broker_ca_file: str = field(PATH, default="")

    @classmethod
    def parse_table(cls, name: str, value: object) -> Intake:
        where = f"intake.{name}"
        spec_values.name_text(name, "intake")
        found = read(cls, value, where)
        found.setdefault("queue", queue_name(name, f"{where}.queue"))
        found.setdefault("format", name if name in FORMATS_BY_NAME else "tasks")
        found.setdefault("caller", spec_values.name_text(f"intake-{name}", f"{where}.caller"))
        # Senders of Celery name a queue whether they made it or not.
        found.setdefault("keep_trying", found["format"] != "celery")
        return cls(name=name, **found)

    def pick(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of a request's body; raises InvalidInput when one of them is not there."""
        if not self.params:
            return dict(body)
        return {name: _look_up(path, body) for name, path in self.params.items()}


def _look_up(path: str, body: Mapping[str, Any]) -> Any:
    try:
        return template.look_up(path, body)
    except errors.InvalidInput:
        raise errors.InvalidInput(f"the body has no {path!r}") from None
