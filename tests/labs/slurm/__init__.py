"""A private Slurm of several nodes on this machine."""

from tests.labs.slurm.configuration import Options
from tests.labs.slurm.lab import SlurmLab

__all__ = ["Options", "SlurmLab"]
