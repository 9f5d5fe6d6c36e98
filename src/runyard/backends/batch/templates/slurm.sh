#!/bin/sh
# runyard, batch @batch@: a task finds its attempt's directory and becomes its runner.
trap '' USR1 USR2  # warnings, which would end this shell; the runner listens to them
task=${SLURM_ARRAY_TASK_ID:-1}
# What sbatch was told, and told in which language, is not meant for an srun or a command inside the job.
unset SLURM_EXPORT_ENV SLURM_BITSTR_LEN LC_ALL
# The array is the batch's own. A run that is a task of the user's array is told so by runyard.
unset SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_COUNT
unset SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_MAX SLURM_ARRAY_TASK_STEP
@common@
