"""`runyard sweep`: which of its commands lives in which file."""

from __future__ import annotations

import click

from runyard.cli.commands.sweep import changes, listing, replay, show, submit, table, watch

SUBMIT = "submit"


class SweepGroup(click.Group):
    """`runyard sweep show S1` shows; `runyard sweep --param lr=0.1,0.01 -- …` submits; alone it lists."""

    def __init__(self, submit: click.Command, name: str) -> None:
        super().__init__(name, help=submit.help, short_help=submit.short_help, no_args_is_help=False)
        self._submit = submit

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = args if args not in ([], ["--json"]) else ["list", *args]
        if words[0] not in (*self.commands, SUBMIT, *ctx.help_option_names):
            words = [SUBMIT, *words]
        return super().parse_args(ctx, words)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        submits = cmd_name == SUBMIT or cmd_name.startswith("-")
        return self._submit if submits else super().get_command(ctx, cmd_name)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return self._submit.collect_usage_pieces(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        click.Command.format_options(self._submit, ctx, formatter)
        self.format_commands(ctx, formatter)


command = SweepGroup(submit.command, name="sweep")
for each in (
    show.command, watch.command, table.command, show.best, changes.cancel, changes.retry, listing.command,
    replay.command,
):  # fmt: skip
    command.add_command(each)
