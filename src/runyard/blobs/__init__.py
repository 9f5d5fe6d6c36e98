"""Content-addressed files, and growing files of attempts: in a directory, or in a bucket of S3."""

from __future__ import annotations

from pathlib import Path

from runyard import errors
from runyard.blobs.base import AttemptFiles, Blobs, BlobStore, RemovableBlobs
from runyard.blobs.directory import open_directory
from runyard.blobs.s3_access import S3Access
from runyard.blobs.writer import BlobWriter

__all__ = ["AttemptFiles", "BlobStore", "BlobWriter", "Blobs", "RemovableBlobs", "S3Access", "open_blobs"]


def open_blobs(location: str, home: Path, access: S3Access | None = None) -> BlobStore:
    """The store at `s3://bucket/prefix`, `s3+http://host:port/bucket/prefix` or in a directory; by default in the home.
    No request is sent to S3 before it is used; `check()` sends some."""
    if location.startswith(("s3:", "s3+")):
        from runyard.blobs.s3 import open_bucket  # only yards with S3 need its client

        return open_bucket(location, home / "incoming", access or S3Access())
    root = Path(location or home).expanduser()
    if not root.is_absolute():
        raise errors.ConfigError(f"blobs: {location!r} is neither an absolute path nor an s3:// address")
    return open_directory(root)
