"""The submitter's Python environment: found, recorded, and sent to be rebuilt at the site."""

from runyard.client.python_env.recording import Recording, record
from runyard.client.python_env.requested import EnvFile, resolve

__all__ = ["EnvFile", "Recording", "record", "resolve"]
