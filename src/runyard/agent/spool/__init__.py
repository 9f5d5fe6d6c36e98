"""Drop boxes: directories where users without a token submit runs, see `runyard.model.bundle`."""

from runyard.agent.spool.link import SpoolLink
from runyard.agent.spool.spool import Spool

__all__ = ["Spool", "SpoolLink"]
