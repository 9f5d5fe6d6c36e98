"""`runyard`: which command lives in which file. Nothing else is loaded before a command is chosen."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

from runyard import __version__
from runyard.cli import failures

RUNS = {
    "submit": "Hand in a run, or many from a file.",
    "sweep": "Run a command for many configurations of its parameters.",
    "ls": "List runs, newest first.",
    "show": "Show all about a run, and what to do next.",
    "logs": "Print a run's log, or follow it live.",
    "wait": "Wait for runs to end; exits as they did.",
    "cancel": "Stop runs, and wait until nothing of them is left.",
    "retry": "Queue ended runs again.",
    "rerun": "Start runs again as new ones, as they were.",
    "diff": "Show what differs between two runs.",
    "best": "Show the best of some runs, or of a sweep, and where its outputs are.",
    "fetch": "Bring a run's outputs here, or its checkpoints.",
    "metrics": "Show what runs have reported, or export every value.",
    "plot": "Draw what runs have reported, here or into a picture.",
    "top": "Show what running runs use: cores, memory, GPUs.",
    "events": "Show what happened to a run, step by step.",
    "tensorboard": "Open TensorBoard on runs, also while they run.",
}
YARD = {
    "up": "Start the yard.",
    "check": "Do what a yard's daemon does, once: take work, submit, poll, relay, finish.",
    "down": "Stop the yard; its runs go on.",
    "status": "Say whether the yard runs, and where.",
    "doctor": "Check this machine and this yard.",
    "token": "Show, create, list and revoke tokens.",
    "site": "Add, list, show, change, drain and remove sites.",
    "agent": "Serve a site from this machine.",
    "recipe": "Name what other programs may start.",
    "bridge": "Take requests from other people's systems.",
    "reply": "List and resend replies to other programs.",
}
OLD_SCRIPTS = {
    "sbatch": "Submit a Slurm batch script to any site.",
    "squeue": "Show runs that have not ended, as Slurm's squeue does.",
    "scancel": "Cancel runs, as Slurm's scancel does.",
    "qsub": "Submit a Grid Engine script to any site.",
    "qstat": "Show runs that have not ended, as Grid Engine's qstat does.",
    "qdel": "Delete jobs, as Grid Engine's qdel does.",
    "ludwig": "Submit what is missing of a Ludwig project's jobs.",
}
SECTIONS = {"Runs": RUNS, "Yard": YARD, "Old scripts": OLD_SCRIPTS}
COMMANDS = {name: text for commands in SECTIONS.values() for name, text in commands.items()}
COMPLETE = "_RUNYARD_COMPLETE"


class LazyGroup(click.Group):
    """Knows its commands by name; `--help` shows them without loading one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"runyard.cli.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise failures.unknown_command(args[0], COMMANDS)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Start here"):
            formatter.write_text("runyard submit -- python train.py")


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="runyard %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """One place for a lab's training runs.

    Hand in what to train; runyard remembers it, runs it where there is room, and says how it ended and why.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: list[str] | None = None) -> None:
    words = sys.argv[1:] if arguments is None else arguments
    sys.exit(failures.guard(lambda: _call(words)))


def _call(words: list[str]) -> Any:
    """Without click's own main, which has other ideas about exit codes and closed pipes."""
    if os.environ.get(COMPLETE):
        return _complete(os.environ[COMPLETE])
    with cli.make_context("runyard", list(words)) as context:
        return cli.invoke(context)


def _complete(asked: str) -> int:
    """A shell that was told `eval "$(_RUNYARD_COMPLETE=bash_source runyard)"` asks for words in this way."""
    from click.shell_completion import shell_complete

    return shell_complete(cli, {}, "runyard", COMPLETE, asked)
