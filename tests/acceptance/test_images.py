"""The images of deploy/, built and started by the lines of its README, on a base of Debian's packages."""

from __future__ import annotations

import json
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.composition import DEPLOY
from tests.acceptance.witness import until
from tests.labs.docker import DockerLab

NAME = "yard.lab.example"  # of the yard in the README
SENT = ("pyproject.toml", "README.md", "LICENSE", ".dockerignore", "deploy", "src")
PATIENCE_S = 240


class Containers:
    """A yard and a worker as the README starts them, in a copy of the checkout."""

    def __init__(self, lab: DockerLab, checkout: Path) -> None:
        self._lab, self._checkout, self._lines = lab, checkout, _lines_of_the_readme(lab)
        for line in self._lines:
            self._type(line)
        self.token = self.execute("token", "show").strip()

    def execute(self, *words: str) -> str:
        return self._lab.docker("exec", "yard", "runyard", *words)

    def start_again(self, name: str) -> None:
        """Another container in the place of the one that was stopped: only the volume is the same."""
        self._lab.docker("rm", name)
        (line,) = (line for line in self._lines if line.startswith("docker run ") and f"--name {name} " in line)
        self._type(line)

    def stop(self, name: str) -> None:
        self._lab.docker("stop", "--time", "60", name)
        assert self._lab.inspect(name, "{{.State.ExitCode}}") == "0", self._lab.docker("logs", name)

    def ask(self, path: str, body: Any = None, host: str = NAME) -> Any:
        """From this machine, which is another one than that of the containers."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Host": host}
        request = urllib.request.Request(f"http://{self._lab.address}:9090/api/v1{path}", data, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def submit(self, script: str, **spec: Any) -> int:
        return int(self.ask("/runs", {"command": ["sh", "-c", script], "cwd": "/tmp", **spec})["id"])

    def outcome(self, run: int) -> Any:
        until(lambda: self.ask(f"/runs/{run}")["state"] in ("succeeded", "failed"), what="an end", timeout=PATIENCE_S)
        return self.ask(f"/runs/{run}")

    def ends(self) -> dict[int, str]:
        return {run["id"]: run["state"] for run in self.ask("/runs")["runs"]}

    def settings(self, image: str, *options: str) -> str:
        """What a container with these options goes by."""
        return self._lab.docker("run", "--rm", *options, image, "doctor", "--settings")

    def _type(self, line: str) -> None:
        """What is started is well before the next line is typed."""
        self._lab.sh(line, self._checkout)
        for name in re.findall("^docker run .*--name ([a-z]+) ", line):
            until(lambda name=name: self._is_well(name), what=f"{name} is well", timeout=PATIENCE_S)

    def _is_well(self, name: str) -> bool:
        assert self._lab.inspect(name, "{{.State.Running}}") == "true", self._lab.docker("logs", name)
        return self._lab.inspect(name, "{{.State.Health.Status}}") == "healthy"


def _lines_of_the_readme(lab: DockerLab) -> list[str]:
    """With what this machine lacks: a registry, a GPU, a name for the yard, and time to wait for health checks."""
    said = re.sub(r"\\\n\s*", "", (DEPLOY / "README.md").read_text(encoding="utf-8"))
    text = "\n".join(re.findall(r"^docker (?:build|run|exec) .*$", said, re.MULTILINE))
    for old, new in (
        ("docker build ", f"docker build --quiet --build-arg BASE={lab.base} "),
        ("docker run ", "docker run --health-interval 2s "),
        (" --gpus all ", f" --add-host {NAME}:{lab.address} "),
    ):
        assert old in text
        text = text.replace(old, new)
    return text.splitlines()


@pytest.fixture
def containers(docker_lab: Callable[[], DockerLab], tmp_path: Path) -> Containers:
    for name in SENT:
        source = DEPLOY.parent / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "secrets"))
        else:
            shutil.copy(source, tmp_path)
    return Containers(docker_lab(), tmp_path)


@pytest.mark.long
def test_a_worker_in_a_container_serves_a_yard_in_another(containers: Containers) -> None:
    """One test for all: to build the images takes longer than the rest."""
    _runs_are_executed_by_the_worker(containers)
    _only_its_names_are_answered(containers)
    _a_run_whose_worker_is_stopped_is_tried_again(containers)
    _what_the_yard_knows_outlives_its_container(containers)
    for image in ("runyard-server", "runyard-worker"):
        assert "amqp://guest@mq/" in containers.settings(image, "--env", "RABBITMQ_HOST=mq")


def _runs_are_executed_by_the_worker(containers: Containers) -> None:
    shown = containers.outcome(containers.submit("id --user --name; command -v python3"))
    assert (shown["state"], shown["site"]) == ("succeeded", "workers")
    assert containers.execute("logs", str(shown["id"])).split() == ["runyard", "/usr/bin/python3"]


def _only_its_names_are_answered(containers: Containers) -> None:
    assert containers.ask("/me", host="yard")["role"] == "admin"
    with pytest.raises(urllib.error.HTTPError, match="403"):
        containers.ask("/me", host="elsewhere.example")


def _a_run_whose_worker_is_stopped_is_tried_again(containers: Containers) -> None:
    """Its processes have gone with the container, whose next one has the same name, boot and process numbers."""
    script = "test -e /var/lib/runyard/begun && exit; touch /var/lib/runyard/begun; echo begun; sleep 600"
    run = containers.submit(script, retry=1)
    until(lambda: "begun" in containers.execute("logs", str(run)), what="a run under way", timeout=PATIENCE_S)
    containers.stop("worker")
    containers.start_again("worker")
    shown = containers.outcome(run)
    assert (shown["state"], shown["attempt"]) == ("succeeded", 2)


def _what_the_yard_knows_outlives_its_container(containers: Containers) -> None:
    before = containers.ends()
    containers.stop("yard")
    containers.start_again("yard")
    assert containers.ends() == before
    assert containers.outcome(containers.submit("true"))["state"] == "succeeded"
