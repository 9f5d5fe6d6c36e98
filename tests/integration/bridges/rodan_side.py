"""Rodan with its broker on one side, a yard with the bridge on the other, and a trainer that copies."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.labs.rabbitmq import RabbitLab
from tests.labs.rodan import RodanApi, RodanJobs, certificate, credentials
from tests.labs.rodan.job import inputs
from tests.labs.yard import Yard

# "Trains" in no time: each model is the image and the layer it is for.
TRAINER = r"""
cd "$RUNYARD_INPUTS" || exit 9
cat image.png background.png > "$OUTPUT_DIR/Background Model.hdf5"
for number in 0 1; do cat image.png layer_$number.png > "$OUTPUT_DIR/Model $number.hdf5"; done
"""
RECIPE: dict[str, Any] = {
    "command": TRAINER,
    "resources": {"cpus": 1},
    "bounds": {"cpus": 2, "memory": "8G", "time": "6h"},
    "resources_from": {
        "cpus": "settings.CPUs",
        "memory": {"param": "settings.Maximum memory (MB)", "writing": "slurm"},
        "time": {"param": "settings.Maximum time (D-HH:MM)", "writing": "slurm"},
    },
}
PAGE = {
    "image": b"IMAGE", "background": b"B", "regions": b"R", "layer_0": b"0", "layer_1": bytes(range(256)) * 300,
}  # fmt: skip
MODELS = {
    "Background Model": b"IMAGEB",
    "Model 0": b"IMAGE0",
    "Model 1": b"IMAGE" + PAGE["layer_1"],
}


class BridgeYard(Yard):
    """`runyard bridge rodan` instead of `runyard up`."""

    @property
    def serving(self) -> tuple[str, ...]:
        return ("bridge", "rodan", "--credentials", str(self.credentials))

    @property
    def credentials(self) -> Path:
        return self.home / "credentials.env"

    def add_recipe(self, **changes: Any) -> None:
        path = self.home / "recipe.yaml"
        path.write_text(yaml.safe_dump({**RECIPE, **changes}))
        done = self.cli("recipe", "add", "rodan", "-f", str(path))
        assert done.returncode == 0, done.stderr


class Side:
    def __init__(self, lab: RabbitLab, api: RodanApi, jobs: RodanJobs, yard: BridgeYard) -> None:
        self.lab, self.api, self.jobs, self.yard = lab, api, jobs, yard

    def upload(self, page: dict[str, bytes] | None = None) -> dict[str, str]:
        """The inputs of a request for this page."""
        return inputs({name: self.api.upload(data) for name, data in (page or PAGE).items()})

    def secrets(self) -> list[str]:
        return [self.lab.password, self.api.password, self.api.token]

    def write_credentials(self, **changes: str) -> None:
        path = self.yard.credentials
        path.touch(mode=0o600)
        path.write_text(credentials(self.lab, self.api, **changes))


@contextlib.contextmanager
def both_sides(lab: RabbitLab) -> Iterator[Side]:
    """The yard is not up yet."""
    with contextlib.ExitStack() as stack:
        api = stack.enter_context(RodanApi("email", certificate=certificate(lab)))
        jobs = stack.enter_context(contextlib.closing(RodanJobs(lab.url("/"))))
        jobs.empty()
        yard = BridgeYard(cpus=2)
        stack.callback(yard.remove)
        side = Side(lab, api, jobs, yard)
        side.write_credentials()
        yield side
