"""`runyard`: which command lives in which file. Nothing else is loaded before a command is chosen."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

from runyard.cli.show import failures
from runyard.version import __version__

RUNS = {
    "submit": "Submit a run, or many from a file.",
    "sweep": "Run a command for many configurations of its parameters.",
    "ls": "List runs, newest first.",
    "show": "Show the details of a run, and what to do next.",
    "logs": "Print a run's log, or follow it live.",
    "wait": "Wait for runs to finish; exits with their exit code.",
    "cancel": "Cancel runs, and wait until all their processes have ended.",
    "retry": "Queue finished runs again.",
    "rerun": "Submit copies of runs as new runs.",
    "diff": "Show what differs between two runs.",
    "best": "Show the best run of several or of a sweep, and where its outputs are.",
    "fetch": "Download a run's outputs or checkpoints.",
    "metrics": "Show the metrics of runs, or export every value.",
    "plot": "Plot metrics of runs in the terminal or into an image file.",
    "top": "Show the cores, memory and GPUs that running runs use.",
    "events": "Show what happened to a run, step by step.",
    "tensorboard": "Open TensorBoard on runs, also while they run.",
}
YARD = {
    "up": "Start the yard.",
    "check": "Do one pass of the yard's work without a daemon: claim, submit, poll, upload, finish.",
    "down": "Stop the yard; its runs continue.",
    "status": "Show whether the yard is running, and where.",
    "doctor": "Check this machine and this yard.",
    "token": "Show, create, list and revoke tokens.",
    "site": "Add, list, show, change, drain and remove sites.",
    "agent": "Serve a site from this machine.",
    "recipe": "Manage recipes: runs that other programs may start.",
    "bridge": "Serve requests of other systems.",
    "reply": "List and resend replies to other programs.",
}
OLD_SCRIPTS = {
    "sbatch": "Submit a Slurm batch script to any site.",
    "squeue": "List unfinished runs, as Slurm's squeue does.",
    "scancel": "Cancel runs, as Slurm's scancel does.",
    "qsub": "Submit a Grid Engine script to any site.",
    "qstat": "List unfinished runs, as Grid Engine's qstat does.",
    "qdel": "Delete jobs, as Grid Engine's qdel does.",
    "ludwig": "Submit the missing jobs of a Ludwig project.",
}
IN_OTHER_WORDS = {*OLD_SCRIPTS, "bridge"}  # commands for users of other systems
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
        folder = "compat" if name in IN_OTHER_WORDS else "commands"
        command: click.Command = import_module(f"runyard.cli.{folder}.{name}").command
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
    """Manage the training runs of a lab.

    Submit a run; runyard stores it, executes it where resources are free, and reports how it ended and why.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: list[str] | None = None) -> None:
    words = sys.argv[1:] if arguments is None else arguments
    sys.exit(failures.guard(lambda: _call(words)))


def _call(words: list[str]) -> Any:
    """Without click's own main, which handles exit codes and closed pipes differently."""
    if os.environ.get(COMPLETE):
        return _complete(os.environ[COMPLETE])
    with cli.make_context("runyard", list(words)) as context:
        return cli.invoke(context)


def _complete(asked: str) -> int:
    """Shell completion, set up by `eval "$(_RUNYARD_COMPLETE=bash_source runyard)"`."""
    from click.shell_completion import shell_complete

    return shell_complete(cli, {}, "runyard", COMPLETE, asked)
