"""`runyard sbatch`."""

from __future__ import annotations

from runyard.bridges.scripts import sbatch
from runyard.bridges.scripts.flags import Given
from runyard.bridges.scripts.slurm import SBATCH
from runyard.cli.compat import native_arguments, script_submission


@native_arguments.old_command(SBATCH, "[SCRIPT [ARG]...]")
def command(given: Given) -> int:
    """Submit a Slurm batch script to any site.

    The #SBATCH lines and flags mean what they mean to Slurm. Without SCRIPT it is read from standard input.

    \b
      runyard sbatch submit.sh
      runyard sbatch --array=1-8 --output=log_%A_%a.txt submit.sh
      runyard sbatch --dependency=afterok:42 --wrap 'python evaluate.py'
    """
    here = native_arguments.here()
    from_stdin = not given.words and "wrap" not in given
    source = sbatch.load(given, native_arguments.standard_input() if from_stdin else b"")
    whole = sbatch.all_flags(given, source)
    job = sbatch.read(whole, source, here)
    runs = script_submission.submit(job, source, here)
    script_submission.answer(job, runs, whole, terse="parsable" in whole, quiet="quiet" in whole)
    return script_submission.wait(runs) if "wait" in whole else 0
