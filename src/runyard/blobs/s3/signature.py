"""Requests signed as S3 wants them: AWS Signature Version 4, in the Authorization header.

https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote

from runyard.blobs.access import S3Access

_ALGORITHM = "AWS4-HMAC-SHA256"


def encode_path(path: str) -> str:
    return quote(path, safe="/~")


def encode_query(query: Mapping[str, str]) -> str:
    """In the order in which it is signed."""
    pairs = sorted((quote(name, safe="~"), quote(value, safe="~")) for name, value in query.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def sign(
    method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes, access: S3Access,
    now: datetime | None = None,
) -> dict[str, str]:  # fmt: skip
    """The headers with what proves that we know the secret and that nobody changed the request. They include Host."""
    moment = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(body).hexdigest()
    signed = {**headers, "x-amz-content-sha256": digest, "x-amz-date": moment}
    lowered = {name.lower(): value.strip() for name, value in signed.items()}
    names = ";".join(sorted(lowered))
    shown = "".join(f"{name}:{lowered[name]}\n" for name in sorted(lowered))
    request = "\n".join([method, encode_path(path), encode_query(query), shown, names, digest])
    scope = f"{moment[:8]}/{access.region}/s3/aws4_request"
    text = "\n".join([_ALGORITHM, moment, scope, hashlib.sha256(request.encode()).hexdigest()])
    proof = hmac.new(_key(access, moment[:8]), text.encode(), hashlib.sha256).hexdigest()
    signed["Authorization"] = (
        f"{_ALGORITHM} Credential={access.key_id}/{scope}, SignedHeaders={names}, Signature={proof}"
    )
    return signed


def _key(access: S3Access, day: str) -> bytes:
    key = f"AWS4{access.secret}".encode()
    for word in (day, access.region, "s3", "aws4_request"):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    return key
