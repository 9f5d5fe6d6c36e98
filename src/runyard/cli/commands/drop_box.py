"""`--via`: runs submitted through a drop box, where the yard cannot be reached. See docs/howto/drop-box.md."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runyard import errors, settings
from runyard.cli.show import failures, output, run_endings

if TYPE_CHECKING:
    from runyard.cli.show.tables import Column
    from runyard.client.drop_box import DropBox

Function = TypeVar("Function", bound=Callable[..., Any])
Json = dict[str, Any]


def option(function: Function) -> Function:
    text = "Use this drop box instead of the yard: sftp://[user@]host/directory, or a local directory."
    return click.option("--via", "via_box", metavar="PLACE", help=text)(function)


def _open(place: str) -> DropBox:
    from runyard.client import drop_box

    return drop_box.open_box(place)


def refuse(given: Mapping[str, Any]) -> None:
    """Raises InvalidInput for options that need a yard."""
    for name, value in given.items():
        if value:
            raise errors.InvalidInput(
                f"--{name.replace('_', '-')} needs a yard, and --via connects to none", "leave it out"
            )


def submit(place: str, specs: Sequence[Json], writer: output.OutputWriter, *, quiet: bool) -> int:
    box, loaded = _open(place), settings.load()
    progress = functools.partial(output.progress, quiet=quiet)
    handed = [box.hand_in(spec, loaded, progress) for spec in specs]

    def draw(console: Any) -> None:
        for name in handed:
            click.echo(f"submitted {name}")
        output.remark(f"  runyard ls --via {place}    show its progress")

    writer.write([{"bundle": name} for name in handed], draw, handed)
    return 0


def ls(place: str, writer: output.OutputWriter) -> None:
    found = _open(place).states()

    def draw(console: Any) -> None:
        from runyard.cli.show import tables

        if found:
            console.print(tables.build(_columns(), found))
        else:
            output.remark(f"no runs in {place}: runyard submit --via {place} -- python train.py")

    writer.write(found, draw, [state["bundle"] for state in found])


def _columns() -> Sequence[Column]:
    from runyard.cli.show import formats
    from runyard.cli.show.tables import Column

    return (
        Column(title="BUNDLE", value=lambda row: row["bundle"]),
        Column(title="RUN", value=lambda row: str(row["id"] or "-"), right=True),
        Column(title="STATE", value=lambda row: row["state"], coloured=True),
        Column(title="SITE", value=lambda row: row.get("site") or "-", boring=("-",)),
        Column(title="TIME", value=lambda row: formats.elapsed(row) if row.get("started_at") else "-", right=True),
        Column(title="NOTE", value=lambda row: _note(row), flexible=True, boring=("",)),
    )


def _note(state: Mapping[str, Any]) -> str:
    return ": ".join(str(part) for part in (state.get("reason"), state.get("detail")) if part)


def logs(place: str, name: str | None, *, follow: bool) -> int:
    (bundle,) = named([name] if name else [])
    box = _open(place)
    box.state(bundle)  # one that does not exist has no log either
    try:
        run_endings.copy(box.log(bundle, follow))
    except KeyboardInterrupt:
        return failures.INTERRUPTED
    return 0


def fetch(place: str, bundles: Sequence[str], directory: str | None, writer: output.OutputWriter) -> None:
    box, several = _open(place), len(bundles) > 1
    fetched = {name: box.fetch(name, _target(name, directory, several)) for name in named(bundles)}

    def draw(console: Any) -> None:
        for name, files in fetched.items():
            for path in files:
                click.echo(path)
            output.remark(f"{name}: {len(files)} file{'s' if len(files) != 1 else ''}")

    document = [{"bundle": name, "files": [str(path) for path in files]} for name, files in fetched.items()]
    writer.write(document, draw, [path for files in fetched.values() for path in files])


def _target(name: str, directory: str | None, several: bool) -> Path:
    if directory is None:
        return Path(name)
    return Path(directory, name) if several else Path(directory)


def cancel(place: str, bundles: Sequence[str], writer: output.OutputWriter) -> int:
    box = _open(place)
    for name in named(bundles):
        box.cancel(name)
    told = [f"requested the end of {name}; runyard ls --via {place} shows when it has stopped" for name in bundles]
    writer.write([{"bundle": name} for name in bundles], lambda console: _echo(told), bundles)
    return 0


def named(bundles: Sequence[str]) -> Sequence[str]:
    if not bundles:
        raise errors.InvalidInput("no bundle was named", "name it as `runyard ls --via …` does")
    return bundles


def _echo(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)
