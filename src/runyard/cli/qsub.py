"""`runyard qsub`."""

from __future__ import annotations

import click

from runyard.bridges.scripts import answers, qsub
from runyard.bridges.scripts.flags import Given
from runyard.bridges.scripts.gridengine import QSUB
from runyard.cli import old_scripts, old_tools


@old_tools.old_command(QSUB, "[SCRIPT [ARG]...]")
def command(given: Given) -> int:
    """Submit a Grid Engine script to any site.

    The #$ lines and flags mean what they mean to Grid Engine. Without SCRIPT it is read from standard input.

    \b
      runyard qsub -q cpu -v A=1,B=2 train.sh
      runyard qsub -cwd -t 1-8 -o 'log.$JOB_ID.$TASK_ID' -j y train.sh
      runyard qsub -cwd -b y -hold_jid 42 python evaluate.py
    """
    here = old_tools.here()
    from_stdin = given.words[:1] in ([], ["-"]) and given.get("b") not in ("y", "yes")
    source = qsub.load(given, old_tools.standard_input() if from_stdin else b"")
    job = qsub.read(given, source, here)
    runs = old_scripts.submit(job, source, here)
    old_scripts.answer(job, runs, given, terse="terse" in given)
    if given.get("sync") not in ("y", "yes"):
        return 0
    code = old_scripts.wait(runs)
    for run in runs:
        click.echo(answers.exited(run.data))
    return code
