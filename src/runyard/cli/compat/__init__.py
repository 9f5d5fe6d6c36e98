"""Commands of other systems: Slurm's, Grid Engine's, Ludwig's and Rodan's."""
