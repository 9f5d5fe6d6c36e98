"""What can be said of deploy/ without containers; tests/acceptance/test_images.py has some."""

from __future__ import annotations

import fnmatch
import json
import re
import stat
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance.composition import DEPLOY, image

ROOT = DEPLOY.parent
DOCKERFILES = [f"deploy/{path.name}" for path in sorted(DEPLOY.glob("*.Dockerfile"))]
FILES = [path for path in sorted(DEPLOY.rglob("*")) if path.is_file() and "secrets" not in path.parts]
NEEDED = {
    "runyard-server": ("-p 9090:9090", "--volume yard:"),
    "runyard-worker": ("--gpus all", "--volume worker:", "--env RUNYARD_URL=", "--env RUNYARD_TOKEN_FILE="),
}
PAGES = [DEPLOY / "README.md", ROOT / "docs" / "howto" / "many-machines.md"]


@pytest.fixture
def compose() -> Any:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def test_the_services_are_complete(compose: Any) -> None:
    services = compose["services"]
    assert set(services) == {"yard", "worker", "postgres", "rabbitmq"}
    for name, service in services.items():
        assert service["healthcheck"]["test"][0] == "CMD", name
        assert service["restart"] == "unless-stopped", name
        for needed in service.get("depends_on", {}).values():
            assert needed == {"condition": "service_healthy"}, name


def test_what_services_name_is_described(compose: Any) -> None:
    named: dict[str, set[str]] = {"secrets": set(), "volumes": set()}
    for service in compose["services"].values():
        named["secrets"] |= {one["source"] if isinstance(one, dict) else one for one in service.get("secrets", [])}
        named["volumes"] |= {one.split(":")[0] for one in service["volumes"] if one[0].isalpha()}
    assert named == {"secrets": set(compose["secrets"]), "volumes": set(compose["volumes"])}


def test_the_worker_reserves_the_gpus(compose: Any) -> None:
    devices = compose["services"]["worker"]["deploy"]["resources"]["reservations"]["devices"]
    assert devices == [{"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}]


def test_make_secrets_makes_what_compose_reads_and_keeps_it(compose: Any, tmp_path: Path) -> None:
    place = tmp_path / "secrets"
    made = []
    for _ in range(2):
        subprocess.run(["sh", DEPLOY / "make-secrets", place], check=True, capture_output=True)
        made.append({path.name: path.read_text() for path in place.iterdir()})
    assert made[0] == made[1]
    assert set(made[0]) == {Path(secret["file"]).name for secret in compose["secrets"].values()}
    assert len({made[0][name] for name in ("postgres_password", "rabbitmq_password", "worker_token")}) == 3
    assert min(map(len, made[0].values())) >= 48
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


@pytest.mark.parametrize("path", DOCKERFILES)
def test_an_image_is_built_from_files_that_are_sent(path: str) -> None:
    kept = [line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"]
    for rest in image(path).all("COPY"):
        *sources, target = rest.split()
        assert target.startswith("/build")
        for source in sources:
            assert (ROOT / source).exists()
            assert any(fnmatch.fnmatch(source, pattern) for pattern in kept), f"{source} is ignored"


@pytest.mark.parametrize("path", DOCKERFILES)
def test_an_image_installs_what_there_is(path: str) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (wanted,) = re.findall(r'pip install "/build\[([\w,]+)\]"', " ".join(image(path).all("RUN")))
    assert "rabbitmq" in wanted.split(",")
    assert set(wanted.split(",")) <= set(extras)


def test_the_yard_in_an_image_knows_every_store_broker_and_search() -> None:
    assert '"/build[postgres,rabbitmq,s3,sweep]"' in " ".join(image("deploy/server.Dockerfile").all("RUN"))


@pytest.mark.parametrize("path", DOCKERFILES)
def test_an_image_does_not_run_as_root_and_starts_runyard(path: str) -> None:
    made = image(path)
    assert made.all("USER")[-1] == "runyard"
    assert made.all("VOLUME") == [made.env["RUNYARD_HOME"]]
    assert made.entrypoint == ["runyard"]
    assert json.loads(made.all("CMD")[-1])[0] in ("up", "agent")


def test_the_server_listens_for_others() -> None:
    made = image("deploy/server.Dockerfile")
    assert made.env["RUNYARD_HOST"] == "0.0.0.0"
    assert made.env["RUNYARD_ALLOWED_HOSTS"] == "yard"
    assert made.all("EXPOSE") == [made.env["RUNYARD_PORT"]] == ["9090"]


def test_images_have_plain_names(compose: Any) -> None:
    """No host of a registry: whoever builds has one, or has a mirror."""
    named = [service["image"] for service in compose["services"].values()]
    for path in DOCKERFILES:
        made = image(path)
        arguments = [rest.split("=", 1)[1] for rest in made.all("ARG") if rest.startswith("BASE=")]
        named += arguments + [rest for rest in made.all("FROM") if rest != "${BASE}"]
    assert all(re.fullmatch(r"[a-z0-9-]+(:[\w.-]+)?", name) for name in named), named


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_variables_are_known(path: Path) -> None:
    known = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    for name in set(re.findall(r"RUNYARD_\w+", path.read_text(encoding="utf-8"))):
        assert f"`{name}`" in known


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_pages_and_dockerfiles_give_the_same_lines(page: Path) -> None:
    """The line that starts a worker, and in the README the one that starts a yard."""
    said = re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8"))
    starts = re.findall(r"^docker run .*$", said, re.MULTILINE)
    assert [start.split()[-1] for start in starts] == (
        ["runyard-server", "runyard-worker"] if page.name == "README.md" else ["runyard-worker"]
    )
    for start in starts:
        assert all(words in start for words in NEEDED[start.split()[-1]])


def test_the_rows_with_docker_beside_training_runs_are_lines_of_the_readme() -> None:
    said = re.sub(r"\\\n\s*", "", (DEPLOY / "README.md").read_text(encoding="utf-8"))
    known = {line.partition("  #")[0].strip() for line in said.splitlines()}
    page = (ROOT / "docs" / "howto" / "from-training-runs.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `docker .*` \| `(.*)` \|$", page, re.MULTILINE)
    assert len(rows) == 4
    assert set(rows) <= known
