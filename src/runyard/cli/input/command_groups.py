"""Groups of commands with a default command."""

from __future__ import annotations

from typing import Any

import click


class BareGroup(click.Group):
    """Without a subcommand, `bare` is called with its options: `site --json` is `site list --json`."""

    def __init__(self, *, bare: str, **named: Any) -> None:
        super().__init__(no_args_is_help=False, subcommand_metavar="[COMMAND] [ARGS]...", **named)
        self._bare = bare

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_bare = not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)
        return super().parse_args(ctx, [self._bare, *args] if is_bare else args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        click.Command.format_options(self.commands[self._bare], ctx, formatter)
        self.format_commands(ctx, formatter)
