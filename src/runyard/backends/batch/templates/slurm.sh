#!/bin/sh
# runyard, batch @batch@: a task finds its attempt's directory and becomes its runner.
task=${SLURM_ARRAY_TASK_ID:-1}
# sbatch was told what to take from the submitter's environment; an srun inside the job must not take it as said to it.
unset SLURM_EXPORT_ENV
@common@
