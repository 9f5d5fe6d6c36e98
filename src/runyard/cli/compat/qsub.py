"""`runyard qsub`."""

from __future__ import annotations

import click

from runyard.bridges.scripts import answers, qsub
from runyard.bridges.scripts.flags import Given
from runyard.bridges.scripts.gridengine import QSUB
from runyard.cli.compat import native_arguments, script_submission


@native_arguments.old_command(QSUB, "[SCRIPT [ARG]...]")
def command(given: Given) -> int:
    """Submit a Grid Engine script to any site.

    The #$ lines and flags mean what they mean to Grid Engine. Without SCRIPT it is read from standard input.

    \b
      runyard qsub -q cpu -v A=1,B=2 train.sh
      runyard qsub -cwd -t 1-8 -o 'log.$JOB_ID.$TASK_ID' -j y train.sh
      runyard qsub -cwd -b y -hold_jid 42 python evaluate.py
    """
    here = native_arguments.here()
    from_stdin = given.words[:1] in ([], ["-"]) and not qsub.is_yes(given, "b")
    source = qsub.load(given, native_arguments.standard_input() if from_stdin else b"")
    whole = qsub.all_flags(given, source)
    job = qsub.read(whole, source, here)
    runs = script_submission.submit(job, source, here)
    script_submission.answer(job, runs, whole, terse="terse" in whole)
    if not qsub.is_yes(whole, "sync"):
        return 0
    code = script_submission.wait(runs)
    for run in runs:
        click.echo(answers.exited(run.data))
    return code
