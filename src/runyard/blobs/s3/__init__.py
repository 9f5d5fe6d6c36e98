"""A blob store in a bucket of S3: Amazon's, or a store that speaks as it does."""

from __future__ import annotations

from pathlib import Path

from runyard.blobs.access import S3Access
from runyard.blobs.base import BlobStore
from runyard.blobs.s3.address import parse_address
from runyard.blobs.s3.bucket import Bucket
from runyard.blobs.s3.store import S3Blobs, S3Files, check_bucket

__all__ = ["open_bucket"]


def open_bucket(location: str, incoming: Path, access: S3Access) -> BlobStore:
    """`incoming` is a directory of this machine, for bytes that are not complete yet. Nothing is asked of S3 here."""
    bucket = Bucket(parse_address(location, access), access)
    return BlobStore(
        blobs=S3Blobs(bucket, incoming),
        files=S3Files(bucket),
        check=lambda: check_bucket(bucket),
        close=bucket.close,
        location=location,
    )
