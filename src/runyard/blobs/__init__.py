"""Content-addressed files, and the files of attempts that grow by offset."""

from runyard.blobs.attempt_files import AttemptFiles
from runyard.blobs.blobs import Blobs

__all__ = ["AttemptFiles", "Blobs"]
