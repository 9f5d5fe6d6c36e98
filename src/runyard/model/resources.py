"""What a run asks for, and what a site has."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runyard.model import fields, units

MAX_COUNT = 1_000_000
MAX_MEMORY = 1 << 60
MAX_TIME = 10 * 366 * 86400


@dataclass(frozen=True, kw_only=True, slots=True)
class Resources:
    """One run's request. `None` means not asked for: no limit and no slot of that kind.

    The run's process starts on the first of its nodes; cpus, memory and gpus are those of each node.
    """

    nodes: int = 1
    cpus: int = 1
    memory: int | None = None  # bytes
    gpus: int = 0
    gpu_type: str | None = None  # a part of the GPU's name, such as "a100"
    gpu_memory: int | None = None  # bytes each GPU must have
    time: int | None = None  # seconds

    @classmethod
    def parse(cls, value: object) -> Resources:
        given = fields.mapping(value, "resources", _PARSERS)
        return cls(**{name: _PARSERS[name](item) for name, item in given.items() if item is not None})

    def to_json(self) -> dict[str, Any]:
        return {name: value for name in _PARSERS if (value := getattr(self, name)) is not None}

    def describe(self) -> str:
        parts = [f"{self.nodes} nodes"] if self.nodes > 1 else []
        parts.append(f"{self.cpus} cpu" + ("s" if self.cpus != 1 else ""))
        if self.memory:
            parts.append(f"{units.show_size(self.memory)} memory")
        if self.gpus:
            parts.append(f"{self.gpus} {self.gpu_type or ''} gpu".replace("  ", " ") + ("s" if self.gpus != 1 else ""))
        return ", ".join(parts) + (" on each" if self.nodes > 1 else "")


_PARSERS: dict[str, Callable[[object], Any]] = {
    "nodes": lambda value: fields.integer(value, "resources.nodes", 1, MAX_COUNT),
    "cpus": lambda value: fields.integer(value, "resources.cpus", 1, MAX_COUNT),
    "memory": lambda value: fields.at_most(units.parse_size(value, "resources.memory"), "resources.memory", MAX_MEMORY),
    "gpus": lambda value: fields.integer(value, "resources.gpus", 0, MAX_COUNT),
    "gpu_type": lambda value: fields.text(value, "resources.gpu_type", 100),
    "gpu_memory": lambda value: fields.at_most(
        units.parse_size(value, "resources.gpu_memory"), "resources.gpu_memory", MAX_MEMORY
    ),
    "time": lambda value: fields.at_most(units.parse_duration(value, "resources.time"), "resources.time", MAX_TIME),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    uuid: str
    type: str = ""
    memory: int = 0

    def suits(self, asked: Resources) -> bool:
        return (asked.gpu_type or "").lower() in self.type.lower() and self.memory >= (asked.gpu_memory or 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Capacity:
    """Slots of a node: all of them, or those that are free now. An elastic place has a queue of its own: everything
    fits there, and how much it takes at once is not counted in slots."""

    cpus: int = 0
    memory: int = 0
    gpus: tuple[Gpu, ...] = ()
    elastic: bool = False

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Capacity:
        gpus = tuple(Gpu(**gpu) for gpu in value.get("gpus", ()))
        return cls(cpus=value["cpus"], memory=value["memory"], gpus=gpus, elastic=value.get("elastic", False))

    def to_json(self) -> dict[str, Any]:
        gpus = [dataclasses.asdict(gpu) for gpu in self.gpus]
        return {"cpus": self.cpus, "memory": self.memory, "gpus": gpus, "elastic": self.elastic}

    def suitable(self, asked: Resources) -> list[Gpu]:
        """GPUs that this request could take, smallest first so that big ones stay free."""
        return sorted((gpu for gpu in self.gpus if gpu.suits(asked)), key=lambda gpu: gpu.memory)

    def shortages(self, asked: Resources) -> list[str]:
        """The kinds of slot that are missing; empty when the request fits."""
        if self.elastic:
            return []
        short = ["nodes"] if asked.nodes > 1 else []
        if asked.cpus > self.cpus:
            short.append("cpus")
        if (asked.memory or 0) > self.memory:
            short.append("memory")
        if asked.gpus > len(self.suitable(asked)):
            short.append("gpus")
        return short

    def minus(self, asked: Resources, gpu_uuids: Iterable[str] | None = None) -> Capacity:
        """What is left; `gpu_uuids` says which GPUs were taken, else the first suitable ones."""
        if self.elastic:
            return self
        if gpu_uuids is None:
            gpu_uuids = [gpu.uuid for gpu in self.suitable(asked)[: asked.gpus]]
        taken = set(gpu_uuids)
        return Capacity(
            cpus=self.cpus - asked.cpus,
            memory=self.memory - (asked.memory or 0),
            gpus=tuple(gpu for gpu in self.gpus if gpu.uuid not in taken),
        )

    def describe(self) -> str:
        if self.elastic:
            return "whatever its own queue allows"
        return f"one node with {self.cpus} cpus, {units.show_size(self.memory)} memory, {len(self.gpus)} gpus"
