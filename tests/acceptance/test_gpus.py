"""Runs on the GPUs of this machine: one at a time on each, seen by nobody else, and free again afterwards."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard import errors
from runyard.runner import nvml
from tests.acceptance.witness import until
from tests.labs.yard import Yard

pytestmark = pytest.mark.component("nvidia gpu")

PROBE = [sys.executable, str(Path(__file__).with_name("gpu_probe.py"))]
HELD = 1 << 30
ONE = {"gpus": 1}


@pytest.fixture
def gpu() -> str:
    """The one that is used here, where the machine has several."""
    return str(nvml.gpus()[0]["uuid"])


@pytest.fixture
def yard(make_yard: Callable[..., Yard], gpu: str) -> Yard:
    """With that GPU, and cpus for more runs than it has room for."""
    made = make_yard(cpus=4)
    made.stop()
    (made.home / "config.toml").write_text(f'gpus = ["{gpu}"]\n')
    return made.start()


@pytest.fixture
def used(gpu: str) -> Iterator[Callable[[], int]]:
    """The bytes of its memory that are taken now, by whomever."""
    library = nvml.open_library()
    assert library is not None
    yield lambda: int(library.usage(gpu)["memory"])
    library.close()


def test_the_gpus_of_the_machine_are_found(make_yard: Callable[..., Yard]) -> None:
    client = make_yard(cpus=2).client()
    until(lambda: client.site("local")["agents"], what="the agent says what it has")
    (agent,) = client.site("local")["agents"]
    found = {gpu["uuid"]: (gpu["type"], gpu["memory"]) for gpu in agent["total"]["gpus"]}
    assert found == {gpu["uuid"]: (gpu["name"], gpu["memory"]) for gpu in nvml.gpus()}


def test_a_run_sees_its_gpu_by_uuid(yard: Yard, gpu: str) -> None:
    run = yard.client().submit(command=[*PROBE, "see"], resources=ONE).wait(timeout=120)
    assert json.loads(run.logs()) == {"variable": gpu, "devices": [gpu]}
    assert run.granted["gpus"] == [gpu]


def test_a_run_without_gpus_sees_none(yard: Yard) -> None:
    run = yard.client().submit(command=[*PROBE, "see"]).wait(timeout=120)
    assert json.loads(run.logs()) == {"variable": "", "devices": []}


def test_two_runs_have_it_one_after_the_other(yard: Yard, tmp_path: Path) -> None:
    """While the first one has it, others that need none overtake the second."""
    client, go = yard.client(), tmp_path / "go"
    waits = ["/bin/sh", "-c", f"until [ -e {go} ]; do sleep 0.1; done"]
    first = client.submit(command=waits, resources=ONE)
    second = client.submit(command=["true"], resources=ONE)
    assert client.submit(command=["true"]).wait(timeout=120).state == "succeeded"
    until(lambda: first.refresh().state == "running", what="the first one runs")
    assert client.submit(command=["true"]).wait(timeout=120).state == "succeeded"
    assert second.refresh().state == "queued"
    go.touch()
    assert [run.wait(timeout=120).state for run in (first, second)] == ["succeeded"] * 2
    assert second.granted == first.granted
    assert second.started_at >= first.ended_at


def test_memory_is_shown_while_it_is_held_and_free_after_a_cancel(
    yard: Yard, gpu: str, used: Callable[[], int]
) -> None:
    """Also what a child holds that left its session, as loaders of data do."""
    before = used()
    probe = " ".join([*PROBE, "hold", str(HELD)])
    run = yard.client().submit(command=["/bin/sh", "-c", f"setsid {probe} & {probe}"], resources=ONE)
    until(lambda: run.logs() == "held\nheld\n", timeout=120, what="both hold memory")
    assert used() >= before + 2 * HELD

    def newest() -> dict[str, object]:
        return next(iter([sample["gpus"][0] for sample in run.usage(1) if sample["gpus"]]), {"memory": 0})

    until(lambda: int(str(newest()["memory"])) >= before + 2 * HELD, timeout=120, what="a sample that shows it")
    assert newest()["uuid"] == gpu
    (shown,) = json.loads(yard.cli("top", "--json", str(run.id)).stdout)
    assert shown["gpus"][0]["memory"] >= before + 2 * HELD
    assert run.cancel().wait(timeout=120).state == "cancelled"
    until(lambda: used() < before + HELD, what="the memory is free")


def test_the_kind_is_chosen_by_a_part_of_its_name(yard: Yard, gpu: str) -> None:
    client = yard.client()
    name = str(nvml.gpus()[0]["name"])
    kind = {**ONE, "gpu_type": name.split()[-1].lower(), "gpu_memory": "1G"}
    assert client.submit(command=[*PROBE, "see"], resources=kind).wait(timeout=120).granted["gpus"] == [gpu]
    with pytest.raises(errors.Unsatisfiable, match="gpu"):
        client.submit(command=["true"], resources={**ONE, "gpu_type": "abacus"})
