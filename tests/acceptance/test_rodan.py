"""Rodan's job from its request to its models: a real broker, a real Slurm, and the trainer of examples/patchwise."""

from __future__ import annotations

import contextlib
import json
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard.cli.input import spec_file
from tests.acceptance.cluster_yard import SITE, ClusterYard
from tests.acceptance.witness import until
from tests.labs.rabbitmq import RabbitLab
from tests.labs.rodan import RodanApi, RodanJobs, certificate, credentials
from tests.labs.rodan.job import inputs, models
from tests.labs.slurm import SlurmLab
from tests.labs.trainer import PATCHWISE, classify, draw_page, interpreter_for

pytestmark = pytest.mark.component("trainer")

TELL_S = 180  # an ending is answered within this time: a minute, and more on a busy machine
SMALL = "--filters 4 --batch 2 --learning-rate 0.005"
PATCH = {"Patch height": 64, "Patch width": 64, "Maximum number of samples per label": 100}
ENDLESS = {**PATCH, "Maximum number of training epochs": 100_000, "Maximum number of samples per label": 10_000}


class Lab:
    """Rodan on one side; on the other a yard that a normal user runs on the login node, from the example's recipe."""

    def __init__(self, slurm: SlurmLab, broker: RabbitLab, stack: contextlib.ExitStack, **changes: Any) -> None:
        """`changes` to the recipe."""
        self.api = stack.enter_context(RodanApi(certificate=certificate(broker)))
        self.jobs = stack.enter_context(contextlib.closing(RodanJobs(broker.url("/"))))
        self.jobs.empty()
        self.slurm, self.yard = slurm, ClusterYard(slurm, "slurm")
        stack.callback(self.yard.stop)
        authority = self._write("authority.pem", broker.authority.read_text())
        known = self._write("credentials.env", credentials(broker, self.api, SSL_CERT_FILE=authority))
        self._write("config.toml", f"[bridge.rodan]\ncredentials = '{known}'\n")
        self.yard.start()
        self.yard.add_site(eager=False)
        added = self.yard.cli("recipe", "add", "rodan", "-f", self._write("recipe.json", self._recipe(changes)))
        assert added.returncode == 0, added.stderr

    def _recipe(self, changes: dict[str, Any]) -> str:
        """The example's, with a smaller network and an interpreter that the nodes have."""
        recipe = spec_file.read_mapping(str(PATCHWISE / "recipe.yaml"), "recipe")
        python, env = interpreter_for(self.slurm.user)
        command = recipe["command"].replace("python", shlex.quote(python), 1)
        # One thread: two that wait for each other on a busy core are much slower.
        env = {**env, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
        usable = {"command": f"{command} {SMALL}", "cwd": str(PATCHWISE), "env": env}
        return json.dumps({**recipe, **usable, **changes})

    def _write(self, name: str, text: str) -> str:
        path = self.yard.home / name
        path.write_text(text)
        path.chmod(0o600)
        self.slurm.user.own(path)
        return str(path)

    def upload(self, page: Path) -> dict[str, str]:
        return inputs({path.stem: self.api.upload(path.read_bytes()) for path in page.glob("*.png")})

    def ask(self, page: Path, **settings: Any) -> str:
        return self.jobs.ask(self.upload(page), **settings)

    def runs(self) -> list[int]:
        return [int(word) for word in self.yard.cli("ls", "-q").stdout.split()]

    def started(self, page: Path, **settings: Any) -> tuple[str, int, str]:
        """A request whose run has begun: its correlation id, the run and its native id."""
        before = set(self.runs())
        asked = self.ask(page, **settings)
        until(lambda: set(self.runs()) - before, what="the run")
        (run,) = set(self.runs()) - before
        return asked, run, self.yard.started(run)

    def told(self, asked: str, run: int, known: Callable[[], object]) -> str:
        """The error, which comes soon after the scheduler knows of the end."""
        until(known, timeout=300, what=f"the scheduler knows the end of run {run}")
        began = time.monotonic()
        reply = self.jobs.wait(asked, TELL_S)
        print(f"run {run}: answered {time.monotonic() - began:.1f} s after its end: {reply['error']}")
        assert list(reply) == ["error"]
        return str(reply["error"])

    def is_over(self, native: str) -> Callable[[], bool]:
        over = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY", "NODE_FAIL")
        return lambda: self.slurm.job(native).get("JobState") in over


@pytest.fixture(scope="module")
def stage() -> Iterator[tuple[contextlib.ExitStack, list[Lab]]]:
    with contextlib.ExitStack() as stack:
        yield stack, []


@pytest.fixture
def lab(
    slurm_lab: Callable[..., SlurmLab], rabbitmq_lab: Callable[..., RabbitLab],
    stage: tuple[contextlib.ExitStack, list[Lab]],
) -> Lab:  # fmt: skip
    """The same for all tests here: to start it takes longer than most of them."""
    slurm, broker = slurm_lab(gpus=1), rabbitmq_lab()
    stack, made = stage
    if not made:
        made.append(Lab(slurm, broker, stack))
    return made[0]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_page(tmp_path_factory.mktemp("page"))


@pytest.mark.long
def test_models_come_back_that_tell_the_layers_apart(lab: Lab, page: Path, tmp_path: Path) -> None:
    settings = {**PATCH, "Maximum memory (MB)": 3000, "CPUs": 2, "Slurm Notification Email": "me@lab.example.org"}
    asked, run, native = lab.started(page, **settings, **{"Maximum number of training epochs": 8})
    job = lab.slurm.job(native)
    assert (job["NumCPUs"], job["MinMemoryNode"], job["MailUser"]) == ("2", "3000M", "me@lab.example.org")
    assert "gpu:1" in job["TresPerNode"] and job["TimeLimit"] == "06:01:00", "the native limit is a minute larger"
    shown = lab.yard.ended(run, 500)
    assert shown["state"] == "succeeded", f"{shown}\n{lab.yard.log(run)}"
    reply = models(lab.jobs.wait(asked, TELL_S))
    assert sorted(reply) == ["Background Model", "Model 0", "Model 1", "Model 2"]
    for port, data in reply.items():
        (tmp_path / f"{port}.hdf5").write_bytes(data)
    (tmp_path / "result.json").write_text(json.dumps({"models": [{"port": port} for port in sorted(reply)]}))
    score = classify(page, tmp_path)
    print(f"run {run}: {score}")
    assert score["chance"] == 0.25
    assert score["mean"] > 0.8, "each layer counts the same"


def test_a_run_that_exceeds_its_time(lab: Lab, page: Path) -> None:
    asked, run, native = lab.started(page, **{**ENDLESS, "Maximum memory (MB)": 3000, "Maximum time (D-HH:MM)": "0:20"})
    told = lab.told(asked, run, lab.is_over(native))
    assert "failed: timeout: reached its time limit of 20 seconds" in told
    assert "raise 'Maximum time (D-HH:MM)' (it was 0:20)" in told


def test_a_run_that_exceeds_its_memory(lab: Lab, tmp_path: Path) -> None:
    large = {**ENDLESS, "Patch height": 900, "Patch width": 900, "Maximum memory (MB)": 1024}
    asked, run, native = lab.started(draw_page(tmp_path, side=2000), **large)
    told = lab.told(asked, run, lab.is_over(native))
    assert "failed: oom: " in told
    assert "1.0 GB" in told and "raise 'Maximum memory (MB)' (it was 1024)" in told


def test_a_run_that_somebody_cancels_on_the_cluster(lab: Lab, page: Path) -> None:
    asked, run, native = lab.started(page, **{**ENDLESS, "Maximum memory (MB)": 3000})
    lab.slurm.run("scancel", native)
    told = lab.told(asked, run, lab.is_over(native))
    assert "cancelled: external" in told and "it was ended on the cluster" in told


def test_a_broken_input(lab: Lab, page: Path) -> None:
    broken = {**lab.upload(page), "Background": "/uploads/projects/none/resources/none/original_file"}
    before, began = lab.runs(), time.monotonic()
    told = lab.jobs.wait(lab.jobs.ask(broken), TELL_S)["error"]
    print(f"answered after {time.monotonic() - began:.1f} s: {told}")
    assert told.startswith("the input 'Background' cannot be had: ") and "404 Not Found" in told
    assert lab.runs() == before


def test_a_request_that_the_cluster_refuses(lab: Lab, page: Path) -> None:
    """Within the recipe's bounds, and more than any node has."""
    told = lab.jobs.wait(lab.ask(page, **{**PATCH, "Maximum memory (MB)": 200_000}), TELL_S)["error"]
    print(told)
    assert "failed: rejected: " in told


def test_what_works_is_told(lab: Lab) -> None:
    done = lab.yard.cli("bridge", "rodan", "--check")
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"ok    site         slurm site '{SITE}' has an agent" in done.stdout
