"""A blob store in a bucket of S3: Amazon's, or a store that speaks as it does. Needs obstore.

Imported only where `blobs` is an address of S3.
"""

from __future__ import annotations

from pathlib import Path

from runyard import errors

try:
    import obstore as _obstore  # noqa: F401
except ImportError:
    raise errors.ConfigError(
        "`blobs` is an address of S3, and the library for it is missing", "pip install 'runyard[s3]'"
    ) from None

from runyard.blobs.base import BlobStore
from runyard.blobs.s3.address import parse_address
from runyard.blobs.s3.bucket import Bucket
from runyard.blobs.s3.store import S3Blobs, S3Files, check_bucket
from runyard.blobs.s3_access import S3Access

__all__ = ["open_bucket"]


def open_bucket(location: str, incoming: Path, access: S3Access) -> BlobStore:
    """`incoming` is a directory of this machine, for bytes that are not complete yet. No request is sent to S3 here."""
    bucket = Bucket(parse_address(location, access), access)
    return BlobStore(
        blobs=S3Blobs(bucket, incoming),
        files=S3Files(bucket),
        check=lambda: check_bucket(bucket),
        close=lambda: None,  # connections are closed with the bucket
        location=location,
    )
