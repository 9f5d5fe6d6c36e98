from __future__ import annotations

import pytest

from runyard import errors
from runyard.backends import capacity
from runyard.backends.ssh_check import NodeFacts
from runyard.model.resources import Gpu
from runyard.model.site import SiteSpec
from runyard.runner import capacity as of_the_runner


def test_what_is_not_said_is_what_there_is() -> None:
    found = capacity.of_this_machine()
    assert (found.cpus, found.memory) == (of_the_runner.usable_cpus(), of_the_runner.usable_memory())


def test_the_owner_knows_better() -> None:
    found = capacity.of_this_machine(cpus=3, memory=5, gpus=["GPU-x", "GPU-y", "GPU-x"])
    assert (found.cpus, found.memory) == (3, 5)
    assert found.gpus == (Gpu(uuid="GPU-x"), Gpu(uuid="GPU-y"))


GPUS = [{"uuid": f"GPU-{name}", "type": "T4", "memory": 16 << 30} for name in "ab"]
FACTS = NodeFacts(node="hoff", boot_id="1", python="3.9.2", cpus=16, memory=64 << 30, gpus=GPUS)


def boxes(**options: str) -> SiteSpec:
    named = {name.replace("__", "."): text for name, text in options.items()}
    return SiteSpec.parse({"kind": "ssh", "dir": "/x", "ssh": ["hoff"], "options": named})


def test_a_node_offers_what_it_has_or_what_is_said_of_it() -> None:
    found = capacity.of_node(boxes(), "hoff", FACTS)
    assert (found.cpus, found.memory, len(found.gpus)) == (16, 64 << 30, 2)
    said = capacity.of_node(boxes(cpus="4", hoff__memory="8G", gpus="2", hoff__gpus="1"), "hoff", FACTS)
    assert (said.cpus, said.memory, [gpu.uuid for gpu in said.gpus]) == (4, 8 << 30, ["GPU-a"])


def test_gpus_that_a_node_does_not_have_are_told() -> None:
    with pytest.raises(errors.ConfigError, match="hoff is said to have 3 gpus, and 2 are found there"):
        capacity.of_node(boxes(gpus="3"), "hoff", FACTS)
