"""Three ways to write what a command found: a table for people, JSON for programs, bare words for shells.

A command hands over the document (JSON values), a function that draws it for people, and its bare words.
Remarks on the way go to standard error, so that standard output stays clean.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 100_000  # what goes to a file or another program is never cut
Function = TypeVar("Function", bound=Callable[..., Any])
Draw = Callable[["Console"], None]


class Writer(Protocol):
    def write(self, document: Any, draw: Draw, words: Iterable[object] = ()) -> None: ...


class TableWriter:
    def write(self, document: Any, draw: Draw, words: Iterable[object] = ()) -> None:
        target = console()
        if target.is_terminal:
            draw(target)
            return
        with target.capture() as drawn:
            draw(target)
        for line in drawn.get().splitlines():
            click.echo(line.rstrip())


class JsonWriter:
    def write(self, document: Any, draw: Draw, words: Iterable[object] = ()) -> None:
        sys.stdout.flush()
        sys.stdout.buffer.write(_json_bytes(document) + b"\n")
        sys.stdout.buffer.flush()  # a command that goes on serving is read from a pipe, too


class QuietWriter:
    def write(self, document: Any, draw: Draw, words: Iterable[object] = ()) -> None:
        for word in words:
            click.echo(word)


def writer(as_json: bool, quiet: bool = False) -> Writer:
    if as_json:
        return JsonWriter()
    return QuietWriter() if quiet else TableWriter()


def json_option(function: Function) -> Function:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(function)


def quiet_option(function: Function) -> Function:
    return click.option("-q", "--quiet", is_flag=True, help="Print the bare ids only.")(function)


def console(*, stderr: bool = False) -> Console:
    """Colours only on a terminal and without NO_COLOR; texts of users are never read as markup."""
    from rich.console import Console

    made = Console(stderr=stderr, markup=False, emoji=False, highlight=False)
    if not made.is_terminal:
        made.width = PIPE_WIDTH
    return made


def remark(text: str) -> None:
    """A line for the person at the terminal."""
    click.echo(text, err=True)


def log_to_stderr(level: str) -> None:
    """Ours at the level that was asked for; of the libraries only what is wrong."""
    import logging

    logging.basicConfig(level="WARNING", format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    logging.getLogger("runyard").setLevel(level.upper())


@contextlib.contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show what is being waited for, where somebody is looking."""
    if not sys.stderr.isatty():
        yield
        return
    with console(stderr=True).status(text):
        yield


@contextlib.contextmanager
def progress(title: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A bar for bytes that are moved, where somebody is looking; it is told how many more are done."""
    if quiet or not sys.stderr.isatty():
        yield lambda size: None
        return
    from runyard.cli import bar

    with bar.build(console(stderr=True)) as shown:
        task = shown.add_task(title, total=total)
        yield lambda size: shown.advance(task, size)


def _json_bytes(document: Any) -> bytes:
    """UTF-8; arguments that are not decodable stay visible as escapes."""
    try:
        return json.dumps(document, indent=2, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(document, indent=2).encode("ascii")
