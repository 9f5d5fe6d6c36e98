"""deploy/compose.yaml without containers: its services as processes, with their commands, variables and secrets.

What a container would have at a path of its own lies below one directory, and a service's name is this machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.labs.yard import end_processes_of

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
PROGRAMS = Path(sys.executable).parent

_VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


class Composition:
    """`variables` are those of whoever calls compose, `places` says which of a container's paths and names is what."""

    def __init__(self, directory: Path, variables: Mapping[str, str], places: Mapping[str, str]) -> None:
        self._directory, self._places = directory, places
        text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
        self._services: dict[str, Any] = yaml.safe_load(
            _VARIABLE.sub(lambda found: variables.get(found[1], found[2]), text)
        )["services"]

    def home(self, service: str) -> Path:
        home = self._directory / service
        home.mkdir(exist_ok=True)
        return home

    def log(self, service: str) -> str:
        return (self.home(service) / "service.log").read_text(errors="replace")

    def environment(self, service: str) -> dict[str, str]:
        """The image's variables and those of the service, over what any process has."""
        given = {**image(self._image(service)).env, **self._services[service]["environment"]}
        own = {name: value for name, value in os.environ.items() if not name.startswith("RUNYARD_")}
        own["PATH"] = f"{PROGRAMS}:{own['PATH']}"
        mapped = {name: self._mapped(service, value) for name, value in given.items()}
        return {**own, **mapped, "RUNYARD_HOME": str(self.home(service))}

    def health(self, service: str) -> subprocess.CompletedProcess[str]:
        how, *command = self._services[service]["healthcheck"]["test"]
        assert how == "CMD"
        return self.execute(service, command)

    def execute(self, service: str, command: list[str]) -> subprocess.CompletedProcess[str]:
        """`docker compose exec`."""
        return subprocess.run(
            command, env=self.environment(service), cwd=self.home(service), capture_output=True, text=True,
            timeout=240, check=False,
        )  # fmt: skip

    @contextlib.contextmanager
    def up(self, service: str) -> Iterator[None]:
        """Until its health check says that it is well."""
        command = [*image(self._image(service)).entrypoint, *self._services[service]["command"]]
        with (self.home(service) / "service.log").open("ab") as log:
            process = subprocess.Popen(
                command, env=self.environment(service), cwd=self.home(service), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log,
            )  # fmt: skip
        try:
            self._until_healthy(service, process)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(120)
            end_processes_of(self.home(service))

    def write_stand_in_for_docker(self, directory: Path) -> None:
        """A `docker` that knows `compose exec SERVICE COMMAND…`."""
        environments = {service: self.environment(service) for service in ("yard", "worker")}
        lines = ["#!/bin/sh", 'test "$1 $2" = "compose exec" || exit 64', "service=$3; shift 3", "case $service in"]
        for service, variables in environments.items():
            given = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
            lines.append(f'{service}) exec env -i {given} "$@" ;;')
        directory.mkdir()
        (directory / "docker").write_text("\n".join([*lines, "esac", ""]))
        (directory / "docker").chmod(0o755)

    def _until_healthy(self, service: str, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + 240
        while self.health(service).returncode:
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{service} does not come up:\n{self.log(service)}")
            time.sleep(0.2)

    def _image(self, service: str) -> str:
        return str(self._services[service]["build"]["dockerfile"])

    def _mapped(self, service: str, value: str) -> str:
        """Secrets are only there for services that name them."""
        for name in re.findall(r"/run/secrets/(\w+)", value):
            assert name in self._services[service]["secrets"], f"{service} does not have the secret {name}"
        for there, here in self._places.items():
            value = value.replace(there, here)
        return value


class Image:
    """What a Dockerfile says: its instructions in order, lines joined."""

    def __init__(self, text: str) -> None:
        joined = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
        lines = (line.split(None, 1) for line in joined.splitlines() if line.strip())
        self.instructions = [(word, rest.strip()) for word, rest in lines]

    def all(self, word: str) -> list[str]:
        return [rest for name, rest in self.instructions if name == word]

    @property
    def env(self) -> dict[str, str]:
        return dict(item.split("=", 1) for rest in self.all("ENV") for item in shlex.split(rest))

    @property
    def entrypoint(self) -> list[str]:
        return list(json.loads(self.all("ENTRYPOINT")[-1]))


def image(path: str) -> Image:
    return Image((DEPLOY.parent / path).read_text(encoding="utf-8"))
