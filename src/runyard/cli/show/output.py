"""Three ways to write a result: a table for users, JSON for programs, bare words for shells.

A command passes the document (JSON values), a function that draws it for users, and its bare words.
Remarks go to standard error, so that standard output stays clean.
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

PIPE_WIDTH = 100_000  # output to a file or a pipe is never cut
Function = TypeVar("Function", bound=Callable[..., Any])
Draw = Callable[["Console"], None]


class OutputWriter(Protocol):
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
        sys.stdout.buffer.flush()  # a command that keeps running may write to a pipe


class QuietWriter:
    def write(self, document: Any, draw: Draw, words: Iterable[object] = ()) -> None:
        for word in words:
            click.echo(word)


def writer(as_json: bool, quiet: bool = False) -> OutputWriter:
    if as_json:
        return JsonWriter()
    return QuietWriter() if quiet else TableWriter()


def json_option(function: Function) -> Function:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(function)


def quiet_option(function: Function) -> Function:
    return click.option("-q", "--quiet", is_flag=True, help="Print the bare ids only.")(function)


def console(*, stderr: bool = False) -> Console:
    """Colours only on a terminal and without NO_COLOR; text from users is never parsed as markup."""
    from rich.console import Console

    made = Console(stderr=stderr, markup=False, emoji=False, highlight=False)
    if not made.is_terminal:
        made.width = PIPE_WIDTH
    return made


def remark(text: str) -> None:
    """A line for the user at the terminal."""
    click.echo(text, err=True)


@contextlib.contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show what the command waits for, if there is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    with console(stderr=True).status(text):
        yield


@contextlib.contextmanager
def progress(title: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar for bytes, if there is a terminal; it is called with the number of further bytes."""
    if quiet or not sys.stderr.isatty():
        yield lambda size: None
        return
    from runyard.cli.show import progress_bar

    with progress_bar.build(console(stderr=True)) as shown:
        task = shown.add_task(title, total=total)
        yield lambda size: shown.advance(task, size)


def _json_bytes(document: Any) -> bytes:
    """UTF-8; undecodable arguments are shown as escapes."""
    try:
        return json.dumps(document, indent=2, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(document, indent=2).encode("ascii")
