"""An intake: a queue of the broker from which other programs' requests are taken, and the recipe that they start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runyard import errors
from runyard.model import fields, spec, template, units

MEBIBYTE = 1 << 20
FORMATS_BY_NAME = ("tasks", "celery")  # queues of these names speak the format of the same name
MOST_PREFETCHED = 1000
QUEUE_NAME_LIMIT = 250  # bytes: AMQP allows 255, and what cannot be used goes to a queue of the name with .dead

FIELDS = (
    "queue", "format", "recipe", "caller", "params", "durable", "auto_delete", "arguments", "passive", "prefetch",
    "reply_limit", "link_time", "keep_trying", "broker", "broker_password_file", "broker_ca_file",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Intake:
    """Build it with `parse`, which checks everything that came from outside."""

    name: str  # of its table in the configuration; requests are known by it
    queue: str
    format: str = "tasks"
    recipe: str | None = None  # None: the default one
    caller: str = ""  # who owns the runs
    params: dict[str, str] = field(default_factory=dict)  # where in the body each parameter is; none: the body itself
    durable: bool = True
    auto_delete: bool = False
    arguments: dict[str, Any] = field(default_factory=dict)
    passive: bool = False  # take the queue as it is, and declare nothing
    prefetch: int = 20
    reply_limit: int = 16 * MEBIBYTE  # the largest reply in bytes: what RabbitMQ 4 accepts unless it is told otherwise
    link_time: int = 7 * 86400  # seconds that a link to a file is good for
    keep_trying: bool = True  # False: a reply queue that is not there means that nobody waits
    broker: str = field(default="", repr=False)  # '': that of the yard
    broker_password_file: str = ""
    broker_ca_file: str = ""

    @classmethod
    def parse(cls, name: str, value: object) -> Intake:
        where = f"intake.{name}"
        spec.name_text(name, "intake")
        given = fields.mapping(value, where, FIELDS)
        speaks = fields.text(given.get("format", name if name in FORMATS_BY_NAME else "tasks"), f"{where}.format", 100)
        checked = {key: _CHECKS[key](item, f"{where}.{key}") for key, item in given.items() if key in _CHECKS}
        checked.setdefault("keep_trying", speaks != "celery")  # whose senders name a queue whether they made it or not
        return cls(
            name=name,
            queue=queue_name(given.get("queue", name), f"{where}.queue"),
            format=speaks,
            caller=spec.name_text(given.get("caller", f"intake-{name}"), f"{where}.caller"),
            **checked,
        )

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


def _text(value: object, where: str) -> str:
    return fields.text(value, where, 4096, empty=True)


_CHECKS: dict[str, Any] = {
    "recipe": spec.name_text,
    "params": _params,
    "durable": fields.boolean,
    "auto_delete": fields.boolean,
    "arguments": _arguments,
    "passive": fields.boolean,
    "prefetch": lambda value, where: fields.integer(value, where, 1, MOST_PREFETCHED),
    "reply_limit": units.parse_size,
    "link_time": units.parse_duration,
    "keep_trying": fields.boolean,
    "broker": _text,
    "broker_password_file": _text,
    "broker_ca_file": _text,
}
