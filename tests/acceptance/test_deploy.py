"""The many-machine set-up: the services of compose.yaml with a real PostgreSQL and a real RabbitMQ, and the units."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.composition import DEPLOY, Composition
from tests.acceptance.witness import until
from tests.labs import postgres, waiting
from tests.labs.daemons import LabError
from tests.labs.rabbitmq import RabbitLab

PAGE = DEPLOY.parent / "docs" / "howto" / "many-machines.md"


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """What `make-secrets` makes."""
    place = tmp_path / "secrets"
    subprocess.run(["sh", DEPLOY / "make-secrets", place], check=True, capture_output=True)
    return place


@pytest.fixture
def database(component: Callable[[str], str], postgres_server: Any, secrets: Path) -> Iterator[str]:
    """Where a PostgreSQL is that lets the account in by its password alone: `127.0.0.1:PORT/NAME`."""
    component("postgresql")
    server: postgres.Server = postgres_server()
    with server.account("runyard", (secrets / "postgres_password").read_text()), server.database("runyard") as url:
        yield url.partition("@")[2]


@pytest.fixture
def broker(rabbitmq_lab: Callable[..., RabbitLab], secrets: Path) -> Iterator[RabbitLab]:
    """A RabbitMQ with the account that its container would read from the secret; other tests use its vhost too."""
    given = dict(line.split(" = ") for line in (secrets / "rabbitmq_user.conf").read_text().splitlines())
    lab = rabbitmq_lab()
    lab.admin("PUT", "users", given["default_user"], body={"password": given["default_pass"], "tags": ""})
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    lab.admin("PUT", "permissions", "/", given["default_user"], body=everything)
    yield lab
    for queue in lab.admin("GET", "queues", "/"):
        with contextlib.suppress(LabError):  # one that goes with its connection is gone by now
            lab.admin("DELETE", "queues", "/", queue["name"])


@pytest.fixture
def composition(database: str, broker: RabbitLab, secrets: Path, tmp_path: Path) -> Composition:
    port = waiting.free_ports(1)[0]
    places = {
        "/run/secrets": str(secrets), "postgres/runyard": database, "http://yard:9090": f"http://127.0.0.1:{port}",
    }  # fmt: skip
    variables = {"RABBITMQ_HOST": f"127.0.0.1:{broker.layout.nodes[0].port}", "YARD_NAME": "yard.lab.example"}
    return Composition(tmp_path, variables, {**places, "9090": str(port)})


@pytest.fixture
def services(composition: Composition) -> Iterator[Composition]:
    with composition.up("yard"), composition.up("worker"):
        yield composition


def test_a_request_over_http_runs_on_the_worker(services: Composition, broker: RabbitLab) -> None:
    until(lambda: _takers(broker) == ["runyard.tickets.workers"], what="a worker that takes tickets")
    until(lambda: _site(services)["agents"], what="a worker that says what it has")
    _add_recipe(services)
    reply = _post(services, {"word": "sesame"})
    until(lambda: _run(services, reply["id"])["state"] in ("succeeded", "failed"), what="the run over", timeout=240)
    shown = _run(services, reply["id"])
    assert (shown["state"], shown["site"]) == ("succeeded", "workers"), services.log("worker")
    assert "sesame" in services.execute("yard", ["runyard", "logs", str(reply["id"])]).stdout
    assert list(services.home("worker").rglob(f"runs/**/{reply['id']}*")), "it was not the worker's process"


def test_only_the_names_that_were_given_are_answered(services: Composition) -> None:
    assert _status(services, "yard.lab.example") == 200
    assert _status(services, "yard") == 200
    assert _status(services, "elsewhere.example") == 403


def test_the_secrets_are_nowhere_but_in_their_files(services: Composition, secrets: Path) -> None:
    shown = services.execute("yard", ["runyard", "doctor", "--settings"]).stdout
    said = services.log("yard") + services.log("worker") + shown
    assert "postgresql://runyard@" in shown
    for path in secrets.iterdir():
        value = path.read_text().split()[-1]
        assert value not in said
        assert value not in (DEPLOY / "compose.yaml").read_text()


def test_a_new_token_in_the_file_replaces_the_old_one(composition: Composition, secrets: Path) -> None:
    with composition.up("yard"):
        assert composition.health("worker").returncode == 0
    old = (secrets / "worker_token").read_text()
    (secrets / "worker_token").write_text("another-" + old)
    with composition.up("yard"):
        assert composition.health("worker").returncode == 0
        (secrets / "worker_token").write_text(old)
        assert "this token is not known" in composition.health("worker").stderr


@pytest.mark.parametrize(
    ("secret", "sentence"),
    [
        ("postgres_password", "password authentication failed"),
        ("worker_token", "agent_tokens.workers: the token in the file is too short"),
    ],
)
def test_a_bad_secret_is_one_sentence(composition: Composition, secrets: Path, secret: str, sentence: str) -> None:
    (secrets / secret).write_text("mistaken")
    done = composition.execute("yard", ["runyard", "up"])
    assert done.returncode == 2
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["error", "fix"]
    assert sentence in done.stderr


def test_the_commands_of_the_page_work(services: Composition, tmp_path: Path) -> None:
    """Those of `console` blocks, from top to bottom, where the services are up. `docker` is a stand-in."""
    services.write_stand_in_for_docker(tmp_path / "bin")
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    blocks = re.findall(r"^```console\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    assert len(lines) > 5
    script = "\n".join(lines).replace("http://localhost:9090", _url(services))
    env = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-exc", script], cwd=tmp_path / "deploy", env=env, capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr + services.log("worker")


@pytest.mark.component("systemd")
@pytest.mark.parametrize("unit", sorted((DEPLOY / "systemd").glob("*.service")), ids=lambda path: path.name)
def test_systemd_understands_the_unit(unit: Path, tmp_path: Path) -> None:
    """The program is looked for, so that of this environment stands for the installed one."""
    program = str(Path(sys.executable).parent / "runyard")
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/opt/runyard/bin/runyard", program))
    done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, timeout=180, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def _takers(broker: RabbitLab) -> list[str]:
    return [consumer["queue"]["name"] for consumer in broker.admin("GET", "consumers", "/")]


def _url(services: Composition) -> str:
    return services.environment("worker")["RUNYARD_URL"]


def _token(services: Composition) -> str:
    return (services.home("yard") / "token").read_text().strip()


def _ask(services: Composition, path: str, body: Any = None, **headers: str) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{_url(services)}{path}", data, {"X-Token": _token(services), **headers})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def _status(services: Composition, host: str) -> int:
    with contextlib.suppress(urllib.error.HTTPError):
        _ask(services, "/api/v1/health", Host=host)
        return 200
    return 403


def _post(services: Composition, body: Any) -> Any:
    return _ask(services, "/request", body)


def _run(services: Composition, number: int) -> Any:
    return json.loads(services.execute("yard", ["runyard", "show", str(number), "--json"]).stdout)


def _site(services: Composition) -> Any:
    return json.loads(services.execute("yard", ["runyard", "site", "show", "workers", "--json"]).stdout)


def _add_recipe(services: Composition) -> None:
    recipe = services.home("yard") / "recipe.yaml"
    recipe.write_text("command: echo the word is {word}\n")
    added = services.execute("yard", ["runyard", "recipe", "add", "say", "-f", str(recipe), "--default"])
    assert added.returncode == 0, added.stderr
