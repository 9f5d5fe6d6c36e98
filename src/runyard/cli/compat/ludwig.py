"""`runyard ludwig`: what `ludwig` did in a project's directory."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from runyard import errors
from runyard.cli.show import output
from runyard.client import Client as Yard


@click.command("ludwig")
@click.option("-src", "--src", help="Package with params.py and job.py (default: the directory's name in lower case).")
@click.option("-r", "--reps", type=click.IntRange(1, 10_000), default=1, help="Repetitions of each configuration.")
@click.option("-m", "--minimal", is_flag=True, help="Run param2debug only, even if it has run before.")
@click.option("-f", "--first-only", "--first_only", is_flag=True, help="Run the first configuration only.")
@click.option("-w", "--worker", "workers", multiple=True, metavar="NODE", help="Only on this node. Repeatable.")
@click.option("-l", "--local", is_flag=True, help="Run on the yard's own machine.")
@click.option("--site", help="Run at this site only.")
@click.option("-e", "--extra-paths", "--extra_paths", "extra", multiple=True, type=click.Path(path_type=Path),
              metavar="DIR", help="Directory to copy to the drive, importable there. Repeatable.")  # fmt: skip
@click.option("-mnt", "--ludwig-data", "--ludwig_data", "share", type=click.Path(path_type=Path), metavar="DIR",
              help="Directory of the shared drive, if not the usual one.")  # fmt: skip
@click.option("-n", "--no-upload", "test", is_flag=True, help="Show what would be submitted; submit nothing.")
@output.json_option
def command(
    src: str | None, reps: int, minimal: bool, first_only: bool, workers: tuple[str, ...], local: bool,
    site: str | None, extra: tuple[Path, ...], share: Path | None, test: bool, as_json: bool,
) -> None:  # fmt: skip
    """Submit the missing jobs of a Ludwig project.

    The project is the current directory. Its package has params.py with param2requests and param2default, and job.py
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
    """The project's own module: the user's code, imported into the user's process."""
    sys.path.insert(0, str(Path.cwd() / Path(source).parent))
    name = f"{Path(source).name}.params"
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever the user's code raises
        raise errors.InvalidInput(
            f"{source}/params.py cannot be imported: {type(error).__name__}: {error}",
            "run it in the project's directory, or name the package with -src",
        ) from error


def _named(params: Any, name: str) -> Mapping[str, Any]:
    found = getattr(params, name, None)
    if not isinstance(found, Mapping):
        raise errors.InvalidInput(f"{params.__name__} has no dict {name}", "add it: names of parameters, and values")
    return found
