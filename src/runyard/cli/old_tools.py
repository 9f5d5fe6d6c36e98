"""Commands that read their words as sbatch, qsub and their kin do: click has other ideas about `-cwd` and `-h`."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Callable
from typing import Any

import click

from runyard import errors
from runyard.bridges.scripts import flags
from runyard.bridges.scripts.flags import Fate, Flag, Given, Table
from runyard.bridges.scripts.job import Here, Notice
from runyard.cli import output
from runyard.client import origin


class OldCommand(click.Command):
    """Its help is the table's; the function gets what the table made of the words."""

    def __init__(self, table: Table, words: str, function: Callable[[Given], int | None]) -> None:
        shown = [_option(flag) for flag in table.flags if flag.fate is Fate.MEANT]
        super().__init__(
            table.program, callback=lambda given: function(given), help=function.__doc__, params=[*shown],
            add_help_option=False, epilog=_epilog(table),
        )  # fmt: skip
        self._table, self._words = table, words

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # a shell asks for words to complete
            return []
        given = flags.parse(args, self._table)
        if "help" in given:
            click.echo(ctx.get_help())
            ctx.exit()
        if given.words and not self._words:
            word, program = given.words[0], self._table.program
            raise errors.InvalidInput(
                f"{program}: {word!r} is no option", f"name jobs with runyard {program} -j {word}"
            )
        ctx.params["given"] = given
        return []

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[OPTIONS]", self._words]


def old_command(table: Table, words: str) -> Callable[[Callable[[Given], Any]], OldCommand]:
    return lambda function: OldCommand(table, words, function)


def _option(flag: Flag) -> click.Option:
    return click.Option(flag.names, metavar=flag.takes or None, is_flag=not flag.takes, help=flag.help)


def _epilog(table: Table) -> str | None:
    """Flags that only the scheduler itself can use."""
    names = [flag.names[-1] for flag in table.flags if flag.fate is Fate.NATIVE]
    return f"Also accepted, for a site of its own kind to use: {', '.join(names)}." if names else None


def here() -> Here:
    return Here(
        directory=origin.current_directory(),
        home=os.path.expanduser("~"),
        user=getpass.getuser(),
        host=os.uname().nodename,
        environ=os.environ,
    )


def standard_input() -> bytes:
    if sys.stdin.isatty():
        output.remark("reading the script from standard input; end it with Ctrl-D")
    return sys.stdin.buffer.read()


def tell(notices: list[Notice]) -> None:
    for notice in notices:
        output.remark(f"notice: {notice.text}" + (f"\nfix: {notice.fix}" if notice.fix else ""))
