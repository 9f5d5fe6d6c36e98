"""Scripts written for sbatch and qsub, as runs of any site.

    flags        how flags are written and read, by table       slurm, gridengine   their tables
    directives   the flags inside a script                      sbatch, qsub        what the flags mean
    arrays       `1-8%2`        patterns   `%A_%a`, `$JOB_ID`   jobs                `42_3`, `afterok:42`
    exports      which variables go with a job                  mistakes            common ones, with a fix
    job          one job, of either tool                        translate           a job as run specs
    results      an OUTPUT_DIR that the script itself sets
    squeue, qstat   the queue as their users know it            answers             what the commands say

Nothing here speaks to a yard; the commands in runyard.cli do.
"""
