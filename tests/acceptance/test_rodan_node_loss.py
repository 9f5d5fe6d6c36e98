"""Rodan is answered although the node of its run is gone: with a real broker, and a Slurm of machines that fail."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_rodan import ENDLESS, Lab
from tests.labs.rabbitmq import RabbitLab
from tests.labs.slurm import SlurmLab
from tests.labs.trainer import draw_page

pytestmark = pytest.mark.component("trainer")


@pytest.fixture
def lab(slurm_lab: Callable[..., SlurmLab], rabbitmq_lab: Callable[..., RabbitLab]) -> Iterator[Lab]:
    """Its nodes can lose power. The recipe has no rule by which another one would go on."""
    slurm = slurm_lab(gpus=1, isolate=True)
    with contextlib.ExitStack() as stack:
        yield Lab(slurm, rabbitmq_lab(), stack, retry={"max": 0})


def test_a_run_whose_node_loses_its_power(lab: Lab, tmp_path: Path) -> None:
    asked, run, native = lab.started(draw_page(tmp_path), **{**ENDLESS, "Maximum memory (MB)": 3000})
    node = lab.yard.show(run)["node"]
    lab.slurm.node_power_off(node)
    lab.slurm.declare_down(node)
    told = lab.told(asked, run, lambda: lab.slurm.job(native).get("JobState") == "NODE_FAIL")
    assert told.startswith(f"run {run} failed: node_lost: Slurm: NODE_FAIL")
    assert f"on {node}" in told
    assert told.endswith("; the node it ran on failed: run the job again")
    assert lab.jobs.waiting() == 0, "its request is not handed out again"
