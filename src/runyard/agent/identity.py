"""The identity of an agent: a name that survives restarts, stored in its site's directory."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runyard import errors, machine
from runyard.hosts import local
from runyard.model.nodes import EVERYBODY, Limits
from runyard.model.resources import Capacity
from runyard.model.wire import Hello
from runyard.version import __version__


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    name: str  # attempts belong to it
    node: str  # name of the node where its runs execute
    boot_id: str  # of that machine
    labels: tuple[str, ...] = ()  # of the node
    limits: Limits = EVERYBODY  # which runs it accepts

    def introduction(self, site: str, total: Capacity) -> Hello:
        return Hello(
            site=site, agent=self.name, node=self.node, boot_id=self.boot_id, version=__version__, total=total,
            labels=self.labels, limits=self.limits,
        )  # fmt: skip


def of_this_machine(name: str, node: str = "", labels: Sequence[str] = (), limits: Limits = EVERYBODY) -> Identity:
    """`node`: its name, if not the host name."""
    return Identity(
        name=name, node=node or machine.node_name(), boot_id=machine.boot_id(), labels=tuple(labels), limits=limits
    )


def durable_name(directory: Path) -> str:
    """The name in agent.json; generated at the first start. Attempts belong to this name, so it must not change."""
    path = directory / "agent.json"
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["name"])
    except FileNotFoundError:
        name = f"{_short(machine.node_name())}-{secrets.token_hex(3)}"
        local.make_directory(os.fspath(directory))
        local.write_file(os.fspath(path), json.dumps({"name": name}).encode(), durable=True)
        return name
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise errors.ConfigError(
            f"{path} cannot be read: {error}", "restore it: unfinished runs belong to the name in it"
        ) from None


def _short(node: str) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", node.partition(".")[0].lower()).strip("-")[:40] or "agent"
