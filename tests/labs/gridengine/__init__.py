"""A private Grid Engine cell of several execution hosts on this machine (root only)."""

from tests.labs.gridengine.configuration import Options
from tests.labs.gridengine.lab import GridEngineLab

__all__ = ["GridEngineLab", "Options"]
