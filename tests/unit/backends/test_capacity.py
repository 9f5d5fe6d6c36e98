from __future__ import annotations

from runyard.backends import capacity
from runyard.hosts import local
from runyard.model.resources import Gpu


def test_what_is_not_said_is_what_there_is() -> None:
    found = capacity.of_this_machine()
    assert (found.cpus, found.memory) == (local.usable_cpus(), local.usable_memory())


def test_the_owner_knows_better() -> None:
    found = capacity.of_this_machine(cpus=3, memory=5, gpus=["GPU-x", "GPU-y", "GPU-x"])
    assert (found.cpus, found.memory) == (3, 5)
    assert found.gpus == (Gpu(uuid="GPU-x"), Gpu(uuid="GPU-y"))
