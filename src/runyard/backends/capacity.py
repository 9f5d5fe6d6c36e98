"""The slots that this machine offers, as far as its owner does not say otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from runyard.hosts import local
from runyard.model.resources import Capacity, Gpu
from runyard.runner import nvml


def of_this_machine(cpus: int = 0, memory: int = 0, gpus: Sequence[str] = ()) -> Capacity:
    """0 and empty mean: what there is. GPUs that are named but not found count too: their owner knows better."""
    return Capacity(
        cpus=cpus or local.usable_cpus(),
        memory=memory or local.usable_memory(),
        gpus=_choose(find_gpus(), gpus),
    )


def find_gpus() -> dict[str, Gpu]:
    found = (Gpu(uuid=gpu["uuid"], type=gpu["name"], memory=gpu["memory"] or 0) for gpu in nvml.gpus())
    return {gpu.uuid: gpu for gpu in found}


def _choose(found: dict[str, Gpu], named: Sequence[str]) -> tuple[Gpu, ...]:
    if not named:
        return tuple(found.values())
    return tuple(found.get(uuid) or Gpu(uuid=uuid) for uuid in dict.fromkeys(named))
