"""Drop boxes: directories in which people without a token hand in runs, see `runyard.model.bundle`."""

from runyard.agent.spool.link import SpoolLink
from runyard.agent.spool.spool import Spool

__all__ = ["Spool", "SpoolLink"]
