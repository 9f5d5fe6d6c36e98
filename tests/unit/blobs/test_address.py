"""Addresses of buckets, right and wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard import errors
from runyard.blobs import S3Access, open_blobs
from runyard.blobs.s3.address import S3Address, parse_address


@pytest.mark.parametrize(
    ("location", "access", "address"),
    [
        ("s3://lab", S3Access(), S3Address(host="s3.us-east-1.amazonaws.com", bucket="lab", prefix="")),
        ("s3://lab/yard/", S3Access(region="eu-north-1"),
         S3Address(host="s3.eu-north-1.amazonaws.com", bucket="lab", prefix="yard/")),
        ("s3://lab/a/b", S3Access(endpoint="minio.lab.example:9000"),
         S3Address(host="minio.lab.example:9000", bucket="lab", prefix="a/b/")),
        ("s3+http://localhost:9000/lab/yard", S3Access(endpoint="elsewhere"),
         S3Address(host="localhost:9000", bucket="lab", prefix="yard/", secure=False)),
        ("s3+http://[::1]:9000/lab", S3Access(), S3Address(host="[::1]:9000", bucket="lab", prefix="", secure=False)),
    ],
)  # fmt: skip
def test_addresses(location: str, access: S3Access, address: S3Address) -> None:
    assert parse_address(location, access) == address


@pytest.mark.parametrize(
    ("location", "endpoint", "said"),
    [
        ("s3:lab", "", "begins neither with s3:// nor with s3\\+http://"),
        ("s3+https://host/lab", "", "begins neither with s3:// nor with s3\\+http://"),
        ("s3://", "", "'' is not the name of a bucket"),
        ("s3://Lab", "", "'Lab' is not the name of a bucket"),
        ("s3://key:secret@lab", "", "the address has a login in it"),
        ("s3://lab/a b", "", "the prefix has other characters"),
        ("s3+http:///lab", "", "'' is not a host"),
        ("s3://lab", "https://minio:9000", "'https://minio:9000' is not a host"),
    ],
)
def test_wrong_addresses(tmp_path: Path, location: str, endpoint: str, said: str) -> None:
    with pytest.raises(errors.ConfigError, match=said) as caught:
        open_blobs(location, tmp_path, S3Access(endpoint=endpoint))
    assert caught.value.fix and "secret@" not in caught.value.message
