"""Content-addressed files, and the files of attempts that grow by offset."""

from runyard.blobs.attempt_files import AttemptFiles
from runyard.blobs.blobs import Blobs, check_digest

__all__ = ["AttemptFiles", "Blobs", "check_digest"]
