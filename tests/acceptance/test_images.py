"""The images of deploy/, built and started, where there is a Docker that has their base image."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.composition import DEPLOY
from tests.acceptance.witness import until
from tests.labs import waiting

pytestmark = pytest.mark.component("docker")

NAME = f"runyard-test-{os.getpid()}"


def docker(*words: str, check: bool = True) -> str:
    done = subprocess.run(
        ["docker", *words], cwd=DEPLOY.parent, env={**os.environ, "DOCKER_BUILDKIT": "1"}, capture_output=True,
        text=True, timeout=280, check=False,
    )  # fmt: skip
    assert not (check and done.returncode), done.stdout + done.stderr
    return done.stdout


@contextlib.contextmanager
def container(part: str, image: str, *options: str) -> Iterator[str]:
    """One with a volume of its own for the home; both are gone afterwards."""
    name = f"{NAME}-{part}"
    file = ("--file", f"deploy/{image}.Dockerfile", "--tag", f"{NAME}-{image}")
    docker("build", "--quiet", "--network", "host", *file, ".")
    volume = ("--volume", f"{name}:/var/lib/runyard")
    docker("run", "--detach", "--init", "--network", "host", "--name", name, *volume, *options, f"{NAME}-{image}")
    try:
        yield name
    finally:
        docker("rm", "--force", name)
        docker("volume", "rm", name)
        docker("image", "rm", f"{NAME}-{image}")


def test_a_worker_in_a_container_serves_a_yard_in_another(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(secrets.token_hex(24))
    shared = ("--volume", f"{token}:/run/secrets/worker_token:ro")
    port = waiting.free_ports(1)[0]
    yard_is = {
        "RUNYARD_PORT": str(port), "RUNYARD_HOST": "127.0.0.1", "RUNYARD_LOCAL_SITE": "named",
        "RUNYARD_AGENT_TOKENS": "workers=/run/secrets/worker_token",
    }  # fmt: skip
    worker_is = {"RUNYARD_URL": f"http://127.0.0.1:{port}", "RUNYARD_TOKEN_FILE": "/run/secrets/worker_token"}
    with container("yard", "server", *shared, *_variables(yard_is)) as yard:
        until(lambda: docker("exec", yard, "runyard", "status", check=False), what="a yard that answers")
        with container("worker", "worker", *shared, *_variables(worker_is)):
            docker("exec", yard, "runyard", "submit", "--cwd", "/tmp", "--", "id", "--user", "--name")
            docker("exec", yard, "runyard", "wait", "1")
            assert docker("exec", yard, "runyard", "logs", "1").strip() == "runyard"
            assert "workers" in docker("exec", yard, "runyard", "ls")


def _variables(given: dict[str, str]) -> list[str]:
    return [word for name, value in given.items() for word in ("--env", f"{name}={value}")]
