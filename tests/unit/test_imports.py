"""Imports run one way. Each part names what it may import; everything else is an error, also inside functions."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import runyard

SOURCE = Path(runyard.__file__).parent

_GROUND = {"errors", "model"}
_BASE = _GROUND | {"settings", "machine", "locks", "loop", "home", "web", "kinds"}
_STORAGE = {"store", "blobs", "broker"}

MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "machine": set(),
    "locks": {"machine"},
    "loop": set(),
    "web": {"errors"},
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
    "pythons": set(),
    "runner": set(),
    "job": set(),
    "testing": _BASE | _STORAGE | {"hosts", "backends", "yard"},
}
ON_TOP = {"cli", "__main__", "__init__"}  # they wire the parts together

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
    "runyard.server",
    "runyard.agent",
}


def modules() -> Iterator[tuple[str, Path]]:
    """Each source file with the part of the package it belongs to."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).parts[0].removesuffix(".py"), path


def imported(path: Path) -> Iterator[str]:
    """Full names of the modules that a file imports, wherever in it."""
    package = ("runyard", *path.relative_to(SOURCE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
            source = base if node.level else str(node.module)
            yield from (f"{source}.{alias.name}" for alias in node.names) if source == "runyard" else [source]


def test_every_part_has_a_place() -> None:
    assert {part for part, _ in modules()} == set(MAY_IMPORT) | ON_TOP


@pytest.mark.parametrize("part", sorted(MAY_IMPORT))
def test_imports_run_one_way(part: str) -> None:
    allowed = MAY_IMPORT[part] | {part, "__version__"}
    wrong = [
        f"{path.relative_to(SOURCE)} imports {name}"
        for owner, path in modules()
        if owner == part
        for name in imported(path)
        if name.split(".")[0] == "runyard" and name.split(".")[1] not in allowed
    ]
    assert not wrong


@pytest.mark.parametrize("part", ["runner", "pythons", "job"])
def test_what_runs_beside_user_code_needs_the_standard_library_only(part: str) -> None:
    own = {"runyard", "__future__", *(path.stem for owner, path in modules() if owner == part)}
    foreign = {
        name for owner, path in modules() if owner == part for name in imported(path)
        if name.split(".")[0] not in sys.stdlib_module_names | own
    }  # fmt: skip
    assert not foreign


def test_the_command_line_starts_light() -> None:
    """`--help` answers without the server, the store or anything that draws."""
    program = "import atexit, sys, runyard.cli.main as m; atexit.register(lambda: print(*sys.modules)); m.main(['-h'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stdout.split())
