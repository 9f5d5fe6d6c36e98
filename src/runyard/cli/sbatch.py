"""`runyard sbatch`."""

from __future__ import annotations

from runyard.bridges.scripts import sbatch
from runyard.bridges.scripts.flags import Given
from runyard.bridges.scripts.slurm import SBATCH
from runyard.cli import old_scripts, old_tools


@old_tools.old_command(SBATCH, "[SCRIPT [ARG]...]")
def command(given: Given) -> int:
    """Submit a Slurm batch script to any site.

    The #SBATCH lines and flags mean what they mean to Slurm. Without SCRIPT it is read from standard input.

    \b
      runyard sbatch submit.sh
      runyard sbatch --array=1-8 --output=log_%A_%a.txt submit.sh
      runyard sbatch --dependency=afterok:42 --wrap 'python evaluate.py'
    """
    here = old_tools.here()
    from_stdin = not given.words and "wrap" not in given
    source = sbatch.load(given, old_tools.standard_input() if from_stdin else b"")
    whole = sbatch.all_flags(given, source)
    job = sbatch.read(whole, source, here)
    runs = old_scripts.submit(job, source, here)
    old_scripts.answer(job, runs, whole, terse="parsable" in whole, quiet="quiet" in whole)
    return old_scripts.wait(runs) if "wait" in whole else 0
