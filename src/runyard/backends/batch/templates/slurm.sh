#!/bin/sh
# runyard, batch @batch@: a task finds its attempt's directory and becomes its runner.
task=${SLURM_ARRAY_TASK_ID:-1}
# sbatch was told what to take from the submitter's environment; an srun inside the job must not take it as said to it.
unset SLURM_EXPORT_ENV
# The array is the batch's own. A run that is a task of the user's array is told so by runyard.
unset SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_COUNT
unset SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_MAX SLURM_ARRAY_TASK_STEP
@common@
