"""The slots that a site or a machine offers, unless the settings say otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runyard import errors
from runyard.backends.base import Backend, Queueing
from runyard.backends.ssh import NodeFacts
from runyard.model import units
from runyard.model.resources import SLOTS, Capacity, Gpu
from runyard.model.site import SiteSpec
from runyard.runner import capacity


def of_backend(backend: Backend, kind: str, mine: Callable[[], Capacity]) -> Capacity:
    """`mine`: of this machine, for a backend that says nothing of slots. Raises ConfigError for a backend that takes
    everything and has no queue to say how much: it would never be given work."""
    if isinstance(backend, Queueing):
        return Capacity(elastic=True)
    total = backend.capacity() or mine()
    if total.elastic:
        raise errors.ConfigError(
            f"the backend {kind!r} offers unlimited capacity without being runyard.backends.base.Queueing",
            "its author adds Queueing to it, or returns the slots of the site from capacity()",
        )
    return total


def of_this_machine(cpus: int = 0, memory: int = 0, gpus: Sequence[str] = ()) -> Capacity:
    """0 and empty mean: all that exist. GPUs that are named but not found count too: the settings are trusted."""
    return Capacity(
        cpus=cpus or capacity.usable_cpus(),
        memory=memory or capacity.usable_memory(),
        gpus=_choose(find_gpus(), gpus),
    )


def of_node(site: SiteSpec, node: str, facts: NodeFacts) -> Capacity:
    """Of a node that reports its resources. Raises ConfigError if the settings name GPUs that it does not have."""
    cpus, memory, gpus = (site.node_option(node, name) for name in SLOTS)
    found = tuple(Gpu(**gpu) for gpu in facts.gpus)
    if gpus and int(gpus) > len(found):
        raise errors.ConfigError(
            f"{node} is said to have {gpus} gpus, and {len(found)} are found there",
            f"see `nvidia-smi` on {node}, or correct it: runyard site edit SITE --option {node}.gpus={len(found)}",
        )
    return Capacity(
        cpus=int(cpus) if cpus else facts.cpus,
        memory=units.parse_size(memory, "memory") if memory else facts.memory,
        gpus=found[: int(gpus)] if gpus else found,
    )


def find_gpus() -> dict[str, Gpu]:
    return {gpu["uuid"]: Gpu(**gpu) for gpu in capacity.gpus()}


def _choose(found: dict[str, Gpu], named: Sequence[str]) -> tuple[Gpu, ...]:
    if not named:
        return tuple(found.values())
    return tuple(found.get(uuid) or Gpu(uuid=uuid) for uuid in dict.fromkeys(named))
