"""What people and programs call, compared with another checkout: `python scripts/compare_surface.py OLD_CHECKOUT`.

Lists every command, option, route, parameter, component, property and setting that only one of the two has. Exit code 1
when something of the old one is missing in this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
LOOK = """
import dataclasses, json
import click
from runyard import settings
from runyard.cli.main import cli
from runyard.server.openapi import build_document
from runyard.server.routes import ROUTES

def options(command, path):
    yield path
    for parameter in command.params:
        yield from (f"{path} {name}" for name in [*parameter.opts, *parameter.secondary_opts])
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from options(command.get_command(context, name), f"{path} {name}")

def routes(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}"
            for parameter in operation.get("parameters", []):
                yield f"{method.upper()} {path} {parameter.get('in')} {parameter.get('name')}"
    for name, shape in document["components"]["schemas"].items():
        yield f"schema {name}"
        yield from (f"schema {name}.{field}" for field in shape.get("properties", {}))

known = {field.name for field in dataclasses.fields(settings.Settings)}
surface = [*options(cli, "runyard"), *routes(build_document(ROUTES)), *(f"setting {name}" for name in known)]
print(json.dumps(sorted(set(surface))))
"""


def surface(checkout: Path) -> set[str]:
    env = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    done = subprocess.run([sys.executable, "-c", LOOK], env=env, cwd="/", capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def main(old: Path) -> int:
    before, now = surface(old), surface(HERE)
    for line in sorted(before - now):
        print(f"- {line}")
    for line in sorted(now - before):
        print(f"+ {line}")
    print(f"{len(before)} before, {len(now)} now, {len(before - now)} missing")
    return int(bool(before - now))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
