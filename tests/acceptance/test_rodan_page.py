"""The page for those who come from Rodan's HPC component, carried out from top to bottom on a real cluster."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard.bridges.rodan import credentials as variables
from runyard.model import bridge
from runyard.model.declaration import names
from tests.acceptance.person import Person
from tests.labs.rabbitmq import RabbitLab
from tests.labs.rodan import RodanApi, RodanJobs, certificate, credentials
from tests.labs.rodan.job import inputs, models
from tests.labs.slurm import SlurmLab
from tests.labs.trainer import PATCHWISE

pytestmark = pytest.mark.component("root")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "from-rodan.md"
TEXT = PAGE.read_text(encoding="utf-8")
# Learns nothing, in no time; the real one is tested on its own.
TRAINER = """
import os, sys
models = {"background": "Background Model", "layer_0": "Model 0"}
for name, port in models.items():
    with open(f"{sys.argv[1]}/{name}.png", "rb") as page:
        with open(f"{os.environ['OUTPUT_DIR']}/{port}.hdf5", "wb") as model:
            model.write(page.read())
print("trained")
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", TEXT, re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[str]:
    return re.findall(r"^ *\$ (.+)$", block, re.MULTILINE)


def rows() -> list[tuple[str, str]]:
    found = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|$", TEXT, re.MULTILINE)
    return [row for row in found if "runyard" in row[1]]


@pytest.fixture
def person(slurm_lab: Callable[..., SlurmLab]) -> Iterator[Person]:
    made = Person(slurm_lab(gpus=1))
    for path in PATCHWISE.glob("re*.*"):
        shutil.copy(path, made.home)
    (made.home / "trainer.py").write_text(TRAINER)
    (made.home / "bin" / "python").symlink_to("/usr/bin/python3")
    made.env |= {"USER": made.lab.user.name}
    yield made
    made.leave()


def test_each_new_line_of_the_page_works(person: Person, rabbitmq_lab: Callable[..., RabbitLab]) -> None:
    broker = rabbitmq_lab()
    first, rules = blocks("console")
    with (
        RodanApi(certificate=certificate(broker)) as api,
        contextlib.closing(RodanJobs(broker.url("/"))) as jobs,
    ):
        jobs.empty()
        authority = shutil.copy(broker.authority, person.home)
        known = person.home / "credentials.env"
        known.write_text(credentials(broker, api, SSL_CERT_FILE=str(authority)))
        config = blocks("toml")[0].replace("~/hpc-trainer-component", str(person.home))
        (person.place / "config.toml").write_text(config)
        for path in person.home.rglob("*"):
            person.lab.user.own(path)
        chmod, check, *setup = commands(first)
        person.follow([chmod, f"{check} || test $? = 1"])  # there is no recipe yet
        said = person.follow(setup)
        assert "--cpus-per-task=6" in said and "gpu:1" in said and "account=def-ichiro" in said
        (_, start), *others = rows()
        person.follow([start])
        asked = jobs.ask(inputs({name: api.upload(name.encode()) for name in PARTS}))
        assert models(jobs.wait(asked)) == {"Background Model": b"background", "Model 0": b"layer_0"}
        said = person.follow([f"{line} || test '{line}' = 'runyard cancel 1'" for _, line in others])
        assert "trained" in said and "* * * * * " in said
        assert models(jobs.wait(asked)), "it was sent again"
        assert person.cli("bridge", "rodan", "--check").returncode == 0
        assert "gres=gpu:v100l:1" in person.follow([*commands(rules), BIG])


PARTS = ("image", "background", "regions", "layer_0")
BIG = "sed 's/32768/150000/' request.json > big.json && runyard recipe test rodan -f big.json"


def test_the_variables_and_the_settings_of_the_page_are_the_real_ones() -> None:
    assert all(f"`{name}`" in TEXT for name in (*variables.VARIABLES, variables.AUTHORITIES))
    table = TEXT.partition("## Settings of")[2]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(names(bridge.RodanBridge))
