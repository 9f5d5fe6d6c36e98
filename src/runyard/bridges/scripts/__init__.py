"""Scripts written for sbatch and qsub, as runs of any site.

    flags        how flags are written and read, by table        slurm, gridengine   their tables, and what the flags mean
    directives   the flags inside a script                       arrays, patterns    `1-8%2`, and `%A_%a` or `$JOB_ID`
    exports      which variables go with a job                   jobs                job ids and dependencies in their words
    job          one job, whoever described it                   translate           a job as run specs
    slips        what is known to go wrong in such scripts       squeue, qstat       the queue, as their users know it

Nothing here speaks to a yard; the commands in runyard.cli do.
"""
