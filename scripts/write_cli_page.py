"""Writes docs/reference/cli.md from the help of the commands. `make docs` runs it; a test compares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from runyard.cli.main import SECTIONS, cli

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"
WIDTH = 100

INTRODUCTION = """\
# Command line

<!-- Written by scripts/write_cli_page.py from the commands' own help: change it there, then run `make docs`. -->

Every command explains itself with `--help`, and prints one JSON document with `--json`; what it says to people
meanwhile goes to standard error. Errors are two lines, `error: …` and `fix: …`, and an [exit code](exit-codes.md);
`RUNYARD_DEBUG=1` adds the traceback. Tables are as wide as the terminal, and neither cut nor coloured in a pipe;
`NO_COLOR=1` switches colours off.

**Which runs:** `42`, several (`42 43`), ranges (`3-9`), lists (`1,4-6`), `last` for your newest, `S1` or its name for
all runs of a [sweep](../howto/sweeps.md), or filters such as `--state queued --project digits --tag probe`.
`--state active` means queued, starting or running.

**Which yard:** the one of the home directory `RUNYARD_HOME`, or the one at `RUNYARD_URL` with the token
`RUNYARD_TOKEN`. `submit`, `sweep` and `retry` start the home's yard when it does not run.

**Completion:** `eval "$(_RUNYARD_COMPLETE=bash_source runyard)"` in `~/.bashrc`; there are `zsh_source` and
`fish_source`, too.

## Runs in files

`runyard submit -f run.yaml` reads YAML (its version 1.2: `on` is a word and `1e-3` a number) or JSON: one run, a list,
or `runs:` with a list. The fields are those of the HTTP API; options on the command line go over them.

```yaml
command: python train.py --lr {lr}      # a text for the shell, or a list of words
project: digits
params: {lr: 0.1, model: {depth: 3}}    # {lr} and {model.depth} in the command
resources: {cpus: 2, memory: 4G, time: 2h}
retry: {max: 2, on: [lost, preempted]}
tags: [probe]
```
"""


def page() -> str:
    context = click.Context(cli, info_name="runyard", terminal_width=WIDTH, max_content_width=WIDTH)
    sections = [INTRODUCTION]
    for title, names in SECTIONS.items():
        sections.append(f"## {title}\n")
        for name in names:
            sections += _sections(cli.get_command(context, name), context)
    return "\n".join(sections)


def _sections(command: click.Command | None, parent: click.Context) -> Iterator[str]:
    """The help of a command, and of those below it."""
    assert command is not None
    context = click.Context(
        command, parent, info_name=command.name, terminal_width=WIDTH, max_content_width=WIDTH,
        help_option_names=["-h", "--help"],
    )  # fmt: skip
    yield f"### {context.command_path}\n\n```text\n{_stripped(command.get_help(context))}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from _sections(command.get_command(context, name), context)


def _stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
