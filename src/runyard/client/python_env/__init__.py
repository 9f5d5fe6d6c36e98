"""The Python environment from which somebody submits: found, written down, and sent along to be built again."""

from runyard.client.python_env.recording import Recording, record
from runyard.client.python_env.wishes import EnvFile, resolve

__all__ = ["EnvFile", "Recording", "record", "resolve"]
