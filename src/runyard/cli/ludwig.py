"""`runyard ludwig`: what `ludwig` did in a project's folder."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from runyard import errors
from runyard.cli import output
from runyard.client import Client as Yard


@click.command("ludwig")
@click.option("-src", "--src", help="The package with params.py and job.py; the folder's name in small letters.")
@click.option("-r", "--reps", type=click.IntRange(1, 10_000), default=1, help="Repetitions of each configuration.")
@click.option("-m", "--minimal", is_flag=True, help="param2debug alone, however often it ran before.")
@click.option("-f", "--first-only", "--first_only", is_flag=True, help="The first configuration alone.")
@click.option("-w", "--worker", "workers", multiple=True, metavar="NODE", help="Only there; may be given again.")
@click.option("-l", "--local", is_flag=True, help="On the yard's own machine.")
@click.option("--site", help="Only at this site.")
@click.option("-e", "--extra-paths", "--extra_paths", "extra", multiple=True, type=click.Path(path_type=Path),
              metavar="DIR", help="Copied to the drive, and importable there; may be given again.")  # fmt: skip
@click.option("-mnt", "--ludwig-data", "--ludwig_data", "share", type=click.Path(path_type=Path), metavar="DIR",
              help="The shared drive, where it is not at its usual place.")  # fmt: skip
@click.option("-n", "--no-upload", "test", is_flag=True, help="Say what would be started, and start nothing.")
@output.json_option
def command(
    src: str | None, reps: int, minimal: bool, first_only: bool, workers: tuple[str, ...], local: bool,
    site: str | None, extra: tuple[Path, ...], share: Path | None, test: bool, as_json: bool,
) -> None:  # fmt: skip
    """Submit what is missing of a Ludwig project's jobs.

    It is the project in the current folder. Its package has params.py with param2requests and param2default, and job.py
    with main(param2val).
    """
    from runyard.bridges.ludwig import Client

    source, here = src or Path.cwd().name.lower(), Path.cwd().name
    configurations = _configurations(_params(source), minimal)
    say = output.remark if as_json else click.echo
    client = Client(here, share=share, site="local" if local else site, yard=Yard(notify=output.remark), say=say)
    runs = client.submit(
        src_ps=[source], param2val_list=configurations[:1] if first_only else configurations, data_ps=extra, reps=reps,
        test=test, worker=workers, run_f_name=None, anew=minimal,
    )  # fmt: skip
    output.writer(as_json).write({"ids": [run.id for run in runs]}, lambda console: None)


def _configurations(params: Any, minimal: bool) -> list[dict[str, Any]]:
    from runyard.bridges.ludwig import gen_all_param2vals

    default = _named(params, "param2default")
    if minimal:
        return [{**default, **_named(params, "param2debug")}]
    return gen_all_param2vals(_named(params, "param2requests"), default)


def _params(source: str) -> Any:
    """The project's own module; it is the person's code, in the person's own process."""
    sys.path.insert(0, str(Path.cwd() / Path(source).parent))
    name = f"{Path(source).name}.params"
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever the person's code does
        raise errors.InvalidInput(
            f"{source}/params.py cannot be imported: {type(error).__name__}: {error}",
            "run it in the project's folder, or name the package with -src",
        ) from error


def _named(params: Any, name: str) -> Mapping[str, Any]:
    found = getattr(params, name, None)
    if not isinstance(found, Mapping):
        raise errors.InvalidInput(f"{params.__name__} has no dict {name}", "add it: names of parameters, and values")
    return found
