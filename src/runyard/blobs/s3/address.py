"""Where a bucket is: `s3://bucket/prefix`, or `s3+http://host:port/bucket/prefix` where plaintext is wanted."""

from __future__ import annotations

import re
from dataclasses import dataclass

from runyard import errors
from runyard.blobs.s3_access import S3Access

_HOST = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9._/-]*")  # what no part of S3 writes in another way


@dataclass(frozen=True, kw_only=True, slots=True)
class S3Address:
    host: str  # with its port, where that is not the usual one
    bucket: str
    prefix: str  # of all keys; empty, or with a slash at its end
    secure: bool = True

    @property
    def url(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self.host}"

    def __str__(self) -> str:
        return f"the S3 store at {self.host}"


def parse_address(location: str, access: S3Access) -> S3Address:
    if "@" in location:  # never shown: it may contain the secret
        raise errors.ConfigError("blobs: the address has a login in it", "write it as `s3_key_id` and `s3_secret_file`")
    scheme, _, rest = location.partition("://")
    if scheme == "s3":
        host = access.endpoint or f"s3.{access.region}.amazonaws.com"
    elif scheme == "s3+http":
        host, _, rest = rest.partition("/")
    else:
        raise _wrong(location, "begins neither with s3:// nor with s3+http://")
    bucket, _, prefix = rest.partition("/")
    if not _HOST.fullmatch(host):
        raise _wrong(location, f"{host!r} is not a host", "write s3_endpoint as host or host:port")
    if not _BUCKET.fullmatch(bucket):
        raise _wrong(location, f"{bucket!r} is not the name of a bucket")
    if not _PREFIX.fullmatch(prefix):
        raise _wrong(location, "the prefix has other characters than letters, digits and ._/-")
    prefix = prefix.strip("/")
    return S3Address(host=host, bucket=bucket, prefix=f"{prefix}/" if prefix else "", secure=scheme == "s3")


def _wrong(location: str, what: str, fix: str = "") -> errors.ConfigError:
    known = "write s3://bucket/prefix, or s3+http://host:port/bucket/prefix for plaintext"
    return errors.ConfigError(f"blobs: {location!r}: {what}", fix or known)
