"""Credentials and endpoint of an S3 store, besides the address of the bucket."""

from __future__ import annotations

from dataclasses import dataclass, field

from runyard.settings import Settings, read_secret


@dataclass(frozen=True, kw_only=True, slots=True)
class S3Access:
    key_id: str = ""
    secret: str = field(default="", repr=False)
    region: str = "us-east-1"  # what stores other than Amazon's call themselves, too
    endpoint: str = ""  # host or host:port, by https; empty: Amazon's in that region
    ca_file: str = ""  # empty: the authorities of the system

    @classmethod
    def of(cls, settings: Settings) -> S3Access:
        secret = read_secret(settings.s3_secret_file, "the secret of the bucket's key", "check `s3_secret_file`")
        return cls(
            key_id=settings.s3_key_id, secret=settings.s3_secret or secret, region=settings.s3_region,
            endpoint=settings.s3_endpoint, ca_file=settings.s3_ca_file,
        )  # fmt: skip
