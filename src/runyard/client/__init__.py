"""The Python client of a yard: few imports, no server code, works where only a client is installed."""

from __future__ import annotations

from runyard.client.client import Client
from runyard.client.outputs import Output
from runyard.client.run import Run
from runyard.client.sweep import Sweep, Trial

__all__ = ["Client", "Output", "Run", "Sweep", "Trial"]
