"""Nodes of a site: their names, which of them a run may use, and which runs an agent accepts."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runyard import errors
from runyard.model import spec_values
from runyard.model.declaration import Declared, field
from runyard.model.json_schema import Schema, listed, text
from runyard.model.values import Many

MOST, LONGEST = 100, 400  # names or labels of one run or node, and their characters: an index of the queue holds them
# They are passed to a scheduler, which reads other characters as patterns.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
KEY = r"[A-Za-z][A-Za-z0-9._-]{0,62}"
VALUE = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
LABEL = re.compile(f"{KEY}(={VALUE})?")


NODE_SCHEMA = text(pattern=f"^{NAME.pattern}$")
NODES_SCHEMA: Schema = {"anyOf": [NODE_SCHEMA, listed(NODE_SCHEMA, maxItems=MOST)]}
LABEL_SCHEMA = text(pattern=f"^{LABEL.pattern}$")
LABELS_SCHEMA: Schema = {
    "anyOf": [
        LABEL_SCHEMA,
        listed(LABEL_SCHEMA, maxItems=MOST),
        {
            "type": "object",
            "propertyNames": {"pattern": f"^{KEY}$"},
            "additionalProperties": {"type": "string", "pattern": f"^({VALUE})?$"},
            "maxProperties": MOST,
        },
    ]
}


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeChoice:
    """Which nodes a run may use; by default all."""

    node: tuple[str, ...] = ()  # any of these
    exclude: tuple[str, ...] = ()  # none of these
    labels: tuple[str, ...] = ()  # all of these: `fast` (whatever its value), or `rack=a`

    def __bool__(self) -> bool:
        return bool(self.node or self.exclude or self.labels)

    def allows(self, name: str, labels: Iterable[str]) -> bool:
        has = set(labels)
        named = not self.node or any(is_called(name, wanted) for wanted in self.node)
        excluded = any(is_called(name, unwanted) for unwanted in self.exclude)
        return named and not excluded and all(_has_label(has, wanted) for wanted in self.labels)

    def to_json(self) -> dict[str, list[str]]:
        shown = dataclasses.asdict(self)
        return {name: list(value) for name, value in shown.items() if value}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> NodeChoice:
        """From JSON that was validated before, such as a stored spec."""
        return cls(**{name: tuple(value[name]) for name in _CHOICE if value.get(name)})

    def describe(self) -> str:
        parts = [f"on {' or '.join(self.node)}"] if self.node else []
        parts += [f"not on {', '.join(self.exclude)}"] if self.exclude else []
        parts += [f"where the label is {' and '.join(self.labels)}"] if self.labels else []
        return ", ".join(parts)


_CHOICE = tuple(item.name for item in dataclasses.fields(NodeChoice))
ANY_NODE = NodeChoice()


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits(Declared):
    """Restrictions of the runs that an agent or a token accepts; by default none."""

    place: ClassVar[str] = "limits"
    about: ClassVar[str] = "Which runs an agent accepts."

    projects: tuple[str, ...] = field(
        Many(spec_values.NAME), default=(), needed=True, help="Only runs of these projects; empty: all"
    )
    users: tuple[str, ...] = field(
        Many(spec_values.NAME), default=(), needed=True, help="Only runs of these users; empty: all"
    )

    def __bool__(self) -> bool:
        return bool(self.projects or self.users)

    def allow(self, owner: str, project: str) -> bool:
        return (not self.users or owner in self.users) and (not self.projects or project in self.projects)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Limits:
        """From JSON that was validated before."""
        return cls(projects=tuple(value.get("projects", ())), users=tuple(value.get("users", ())))

    def describe(self) -> str:
        """`project digits, user ada or bob`; empty without limits."""
        parts = [f"project {' or '.join(self.projects)}"] if self.projects else []
        parts += [f"user {' or '.join(self.users)}"] if self.users else []
        return ", ".join(parts)


EVERYBODY = Limits()


def is_called(node: str, name: str) -> bool:
    """A node is identified by its full name or the first part of it, without regard to case."""
    full, asked = node.lower(), name.lower()
    return asked in (full, full.partition(".")[0])


def parse_name(value: object, where: str) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise errors.InvalidInput(f"{where}: {value!r} is not the name of a node", "write names like node17, in a list")
    return value


def parse_names(value: object, where: str) -> tuple[str, ...]:
    """One name, or a list of them."""
    return _distinct(value, where, parse_name)


def parse_labels(value: object, where: str) -> tuple[str, ...]:
    """`fast`, a list such as [fast, rack=a], or a mapping such as {rack: a}. Sorted, so that they can be compared."""
    if isinstance(value, Mapping):
        value = [_label_text(name, item) for name, item in value.items()]
    return tuple(sorted(_distinct(value, where, parse_label)))


def _label_text(name: object, value: object) -> str:
    return str(name) if value in (None, "", True) else f"{name}={value}"


def parse_label(value: object, where: str) -> str:
    if not isinstance(value, str) or not LABEL.fullmatch(value):
        raise errors.InvalidInput(
            f"{where}: {value!r} is not a label", "write it like fast or rack=a, with letters, digits, '.', '_', '-'"
        )
    return value


def _distinct(value: object, where: str, parse: Callable[[object, str], str]) -> tuple[str, ...]:
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    found = tuple(dict.fromkeys(parse(item, where) for item in items))
    if len(found) > MOST or sum(map(len, found)) > LONGEST:
        raise errors.InvalidInput(
            f"{where}: too many names", "give the nodes a label, or use an option of the site's scheduler"
        )
    return found


def _has_label(has: set[str], wanted: str) -> bool:
    return wanted in has or ("=" not in wanted and any(label.partition("=")[0] == wanted for label in has))
