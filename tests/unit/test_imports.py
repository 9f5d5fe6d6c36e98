"""Imports run one way. Each part names what it may import; everything else is an error, also inside functions."""

from __future__ import annotations

import ast
import graphlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import runyard

SOURCE = Path(runyard.__file__).parent

_GROUND = {"errors", "model"}
_BASE = _GROUND | {"settings", "machine", "locks", "loop", "home", "web", "kinds", "version"}
_STORAGE = {"store", "blobs", "broker"}

# What cli/ may import besides itself: it has words, options and tables, and asks `app` and `client` for the rest.
# `settings` and `home` say which yard is meant, `machine` who asks, `kinds` which kinds of sites there are by name,
# `version` what --version prints; all of them are small and load none of the parts.
_CLI = _GROUND | {"app", "client", "settings", "home", "machine", "kinds", "version"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "version": set(),
    "machine": set(),
    "locks": {"machine"},
    "loop": set(),
    "web": {"errors", "version"},
    "model": {"errors"},
    "settings": _GROUND,
    "kinds": _GROUND,
    "home": _GROUND | {"settings", "machine", "locks"},
    "store": _BASE,
    "blobs": _BASE,
    "broker": _BASE,
    "hosts": _BASE,
    "yard": _BASE | _STORAGE,
    "server": _BASE | _STORAGE | {"yard", "bridges"},
    "client": _BASE,
    "bridges": _BASE | {"client"},
    "backends": _BASE | {"hosts", "runner"},
    "agent": _BASE | {"hosts", "backends", "client", "runner", "pythons"},
    "app": _BASE | _STORAGE | {"hosts", "backends", "yard", "server", "bridges", "client", "agent", "runner"},
    "cli": _CLI | {"bridges"},  # more narrowly below
    "pythons": set(),
    "runner": set(),
    "job": set(),
    "testing": _BASE | _STORAGE | {"hosts", "backends", "yard"},
}
ON_TOP = {"__main__", "__init__"}

HEAVY = {
    "sqlalchemy",
    "alembic",
    "starlette",
    "uvicorn",
    "asyncio",
    "rich",
    "yaml",
    "psutil",
    "pika",
    "obstore",
    "boto3",
    "runyard.server",
    "runyard.agent",
    "runyard.app",
    "runyard.store",
    "runyard.yard",
}


def modules() -> Iterator[tuple[str, Path]]:
    """Each source file with the part of the package it belongs to."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).parts[0].removesuffix(".py"), path


def module_name(path: Path) -> str:
    words = ("runyard", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(words[:-1] if words[-1] == "__init__" else words)


MODULES = {module_name(path): path for _, path in modules()}


def imported(path: Path) -> Iterator[str]:
    """Full names of the modules that a file imports, wherever in it: inside functions and for types alone, too."""
    package = ("runyard", *path.relative_to(SOURCE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
            source = base if node.level else str(node.module)
            for alias in node.names:
                name = f"{source}.{alias.name}"
                yield name if name in MODULES or source == "runyard" else source


def test_every_part_has_a_place() -> None:
    assert {part for part, _ in modules()} == set(MAY_IMPORT) | ON_TOP


@pytest.mark.parametrize("part", sorted(MAY_IMPORT))
def test_imports_run_one_way(part: str) -> None:
    allowed = MAY_IMPORT[part] | {part}
    wrong = [
        f"{path.relative_to(SOURCE)} imports {name}"
        for owner, path in modules()
        if owner == part
        for name in imported(path)
        if name.split(".")[0] == "runyard" and name.split(".")[1] not in allowed
    ]
    assert not wrong


def test_commands_ask_the_app_and_the_client() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)} imports {name}"
        for owner, path in modules()
        if owner == "cli"
        for name in imported(path)
        if name.split(".")[0] == "runyard" and name.split(".")[1] not in _allowed_in_cli(path)
    ]
    assert not wrong


def _allowed_in_cli(path: Path) -> set[str]:
    """Commands in other people's words also ask those who know these words."""
    is_compat = path.parent.name == "compat"
    return _CLI | {"cli", "bridges"} if is_compat else _CLI | {"cli"}


@pytest.mark.parametrize("part", ["cli", "app", "client", "agent"])
def test_sql_is_the_stores_business(part: str) -> None:
    wrong = [
        f"{path.relative_to(SOURCE)} imports {name}"
        for owner, path in modules()
        if owner == part
        for name in imported(path)
        if name.split(".")[0] in ("sqlite3", "sqlalchemy", "psycopg")
    ]
    assert not wrong


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Imports inside functions and for types alone are imports, too. That a package is loaded before its modules is
    Python's own doing, and not counted."""
    graph = {name: {other for other in imported(path) if other in MODULES} - {name} for name, path in MODULES.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


@pytest.mark.parametrize("part", ["runner", "pythons", "job"])
def test_what_runs_beside_user_code_needs_the_standard_library_only(part: str) -> None:
    own = {"runyard", "__future__", *(path.stem for owner, path in modules() if owner == part)}
    foreign = {
        name for owner, path in modules() if owner == part for name in imported(path)
        if name.split(".")[0] not in sys.stdlib_module_names | own
    }  # fmt: skip
    assert not foreign


@pytest.mark.parametrize("words", [["-h"], ["submit", "-h"], ["ls", "--json"]])
def test_the_command_line_starts_light(words: list[str], tmp_path: Path) -> None:
    """`--help` and `ls` answer without the server, the agent, the store or anything that draws."""
    program = (
        f"import atexit, sys, runyard.cli.main as m\natexit.register(lambda: print(*sys.modules)); m.main({words!r})"
    )
    environ = {**os.environ, "RUNYARD_URL": "http://127.0.0.1:9", "RUNYARD_TOKEN": "t", "RUNYARD_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environ)
    assert "runyard.cli.main" in done.stdout
    assert not HEAVY & set(done.stdout.split())


def test_a_yard_without_s3_does_not_load_its_library(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib, runyard.yard.yard, runyard.blobs as b; b.open_blobs('', pathlib.Path(sys.argv[1])); "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True)
    assert not {"obstore", "boto3", "runyard.blobs.s3"} & set(done.stdout.split())
