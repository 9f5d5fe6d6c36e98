"""Commands that parse their arguments as sbatch and qsub do: click treats `-cwd` and `-h` differently."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Callable
from typing import Any

import click

from runyard import errors
from runyard.bridges.scripts import flags
from runyard.bridges.scripts.flags import CommandFlag, FlagHandling, FlagTable, Given
from runyard.bridges.scripts.job import Here, Notice
from runyard.cli.show import output
from runyard.client import origin


class OldCommand(click.Command):
    """Its help comes from the table; the function gets the parsed arguments."""

    def __init__(self, table: FlagTable, words: str, function: Callable[[Given], int | None]) -> None:
        shown = [_option(flag) for flag in table.flags if flag.fate is FlagHandling.MEANT]
        super().__init__(
            table.program, callback=lambda given: function(given), help=function.__doc__, params=[*shown],
            add_help_option=False, epilog=_epilog(table),
        )  # fmt: skip
        self._table, self._words = table, words

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # shell completion
            return []
        given = flags.parse(args, self._table)
        if "help" in given:
            click.echo(ctx.get_help())
            ctx.exit()
        if given.words and not self._words:
            word, program = given.words[0], self._table.program
            raise errors.InvalidInput(
                f"{program}: unexpected argument {word!r}", f"name jobs with runyard {program} -j {word}"
            )
        ctx.params["given"] = given
        return []

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[OPTIONS]", self._words]


def old_command(table: FlagTable, words: str) -> Callable[[Callable[[Given], Any]], OldCommand]:
    return lambda function: OldCommand(table, words, function)


def _option(flag: CommandFlag) -> click.Option:
    return click.Option(flag.names, metavar=flag.takes or None, is_flag=not flag.takes, help=flag.help)


def _epilog(table: FlagTable) -> str | None:
    """Flags that only the scheduler itself can use."""
    names = [flag.names[-1] for flag in table.flags if flag.fate is FlagHandling.NATIVE]
    return f"Also accepted, and passed on at a site of that kind: {', '.join(names)}." if names else None


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
