"""What a run requests, and what a site has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runyard.model import units
from runyard.model.declaration import Declared, Option, declared, field, names
from runyard.model.values import Duration, Flag, Many, Part, Size, Text, Whole

MAX_COUNT = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Resources(Declared):
    """One run's request. `None` means not requested: no limit and no slot of that kind.

    The run's process starts on the first of its nodes; cpus, memory and gpus are those of each node.
    """

    place: ClassVar[str] = "resources"
    about: ClassVar[str] = "What a run requests. A field that is missing or null is not requested."

    nodes: int = field(
        Whole(1, MAX_COUNT), default=1,
        track=True, help="Nodes of a cluster, each with the other resources; the command starts on the first",
        option=Option("--nodes", "N"),
    )  # fmt: skip
    cpus: int = field(
        Whole(1, MAX_COUNT), default=1, track=True,
        help="CPU cores; also sets thread variables such as OMP_NUM_THREADS",
        option=Option("--cpus", "N"),
    )  # fmt: skip
    memory: int | None = field(
        Size(), default=None, brief=True, track=True, help="Memory that is reserved and enforced",
        option=Option("--memory", "SIZE", "Memory limit, such as 4G."),
    )  # fmt: skip
    gpus: int = field(
        Whole(0, MAX_COUNT), default=0, track=True, help="GPUs, exclusive to this run", option=Option("--gpus", "N")
    )
    gpu_type: str | None = field(
        Text(100), default=None, brief=True, track=True, help="Part of the GPU's name, such as a100",
        option=Option("--gpu-type", "TEXT"),
    )  # fmt: skip
    gpu_memory: int | None = field(
        Size(),
        default=None,
        brief=True,
        track=True,
        help="Memory that each GPU must have",
        option=Option("--gpu-memory", "SIZE"),
    )
    time: int | None = field(
        Duration(), default=None, brief=True, help="Time limit",
        option=Option("--time", "DURATION", "Time limit, such as 90s, 2h or 1:30:00."),
    )  # fmt: skip

    def describe(self) -> str:
        parts = [f"{self.nodes} nodes"] if self.nodes > 1 else []
        parts.append(f"{self.cpus} cpu" + ("s" if self.cpus != 1 else ""))
        if self.memory:
            parts.append(f"{units.show_size(self.memory)} memory")
        if self.gpus:
            parts.append(f"{self.gpus} {self.gpu_type or ''} gpu".replace("  ", " ") + ("s" if self.gpus != 1 else ""))
        return ", ".join(parts) + (" on each" if self.nodes > 1 else "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu(Declared):
    place: ClassVar[str] = "gpu"

    uuid: str = field(Text(1000))
    type: str = field(Text(1000, empty=True), default="", help="Its name")
    memory: int = field(Whole(0, units.MAX_MEMORY), default=0, help="Bytes")

    def suits(self, asked: Resources) -> bool:
        return (asked.gpu_type or "").lower() in self.type.lower() and self.memory >= (asked.gpu_memory or 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Capacity(Declared):
    """Slots of a node: all of them, or the free ones. An elastic site has its own queue: everything fits there, and
    its slots are not counted."""

    place: ClassVar[str] = "capacity"
    about: ClassVar[str] = "Slots: all of them, or the free ones; below zero if a site was made smaller."

    cpus: int = field(Whole(-MAX_COUNT, MAX_COUNT), default=0, needed=True, help="CPU slots")
    memory: int = field(Whole(-units.MAX_MEMORY, units.MAX_MEMORY), default=0, needed=True, help="Bytes")
    gpus: tuple[Gpu, ...] = field(Many(Part(Gpu)), default=())
    elastic: bool = field(Flag(), default=False, help="True: the site has its own queue, and everything fits")

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Capacity:
        """From JSON that was validated before."""
        return cls(**{**value, "gpus": tuple(Gpu(**gpu) for gpu in value.get("gpus", ()))})

    def suitable(self, asked: Resources) -> list[Gpu]:
        """GPUs that suit this request, smallest first so that large ones stay free."""
        return sorted((gpu for gpu in self.gpus if gpu.suits(asked)), key=lambda gpu: gpu.memory)

    def shortages(self, asked: Resources) -> list[str]:
        """The kinds of slots that are missing; empty if the request fits."""
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
        """What remains; `gpu_uuids` are the GPUs in use, else the first suitable ones."""
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

    def counts(self) -> dict[str, int]:
        """How many slots of each kind, memory in bytes."""
        amounts = {name: getattr(self, name) for name in SLOTS}
        return {name: len(amount) if isinstance(amount, tuple) else amount for name, amount in amounts.items()}

    def describe(self) -> str:
        if self.elastic:
            return "whatever its own queue allows"
        return f"one node with {self.cpus} cpus, {units.show_size(self.memory)} memory, {len(self.gpus)} gpus"


SLOTS = names(Capacity, lambda one: one.name in declared(Resources))  # kinds of them: what a run takes of a node
