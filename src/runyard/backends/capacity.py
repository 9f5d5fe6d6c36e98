"""The slots that a machine offers, as far as its owner does not say otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from runyard import errors
from runyard.backends.ssh_check import Facts
from runyard.model import units
from runyard.model.resources import Capacity, Gpu
from runyard.model.site import SiteSpec
from runyard.runner import capacity


def of_this_machine(cpus: int = 0, memory: int = 0, gpus: Sequence[str] = ()) -> Capacity:
    """0 and empty mean: what there is. GPUs that are named but not found count too: their owner knows better."""
    return Capacity(
        cpus=cpus or capacity.usable_cpus(),
        memory=memory or capacity.usable_memory(),
        gpus=_choose(find_gpus(), gpus),
    )


def of_node(site: SiteSpec, node: str, facts: Facts) -> Capacity:
    """Of a node that says what it has. Raises ConfigError where it is said to have GPUs that it does not show."""
    cpus, memory, gpus = (site.node_option(node, name) for name in ("cpus", "memory", "gpus"))
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
