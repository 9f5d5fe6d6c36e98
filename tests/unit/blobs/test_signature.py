"""Signatures, against the examples that Amazon publishes and against Amazon's own library."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.blobs import S3Access
from runyard.blobs.s3.signature import encode_path, encode_query, sign

# https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
ACCESS = S3Access(key_id="AKIAIOSFODNN7EXAMPLE", secret="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
NOW = datetime(2013, 5, 24, tzinfo=UTC)
HOST = {"Host": "examplebucket.s3.amazonaws.com"}
PUT = {**HOST, "Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"}


@pytest.mark.parametrize(
    ("method", "path", "query", "headers", "body", "proof"),
    [
        ("GET", "/test.txt", {}, {**HOST, "Range": "bytes=0-9"}, b"",
         "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        ("PUT", "/test$file.text", {}, PUT, b"Welcome to Amazon S3.",
         "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        ("GET", "/", {"lifecycle": ""}, HOST, b"",
         "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ("GET", "/", {"max-keys": "2", "prefix": "J"}, HOST, b"",
         "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
)  # fmt: skip
def test_the_published_examples(
    method: str, path: str, query: dict[str, str], headers: dict[str, str], body: bytes, proof: str
) -> None:
    signed = sign(method, path, query, headers, body, ACCESS, NOW)
    assert signed["Authorization"].endswith(f"Signature={proof}")


@given(st.text(max_size=40), st.dictionaries(st.text(min_size=1, max_size=9), st.text(max_size=9)), st.binary())
def test_any_request_as_botocore_signs_it(key: str, query: dict[str, str], body: bytes) -> None:
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    path = f"/bucket/{key.encode(errors='replace').decode()}"
    query = {_clean(name): _clean(value) for name, value in query.items()}
    signed = sign("PUT", path, query, {"Host": "localhost:9000"}, body, ACCESS)
    text = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query.items())
    request = AWSRequest("PUT", f"http://localhost:9000{encode_path(path)}?{text}", data=body)
    for name in signed.keys() - {"Authorization"}:
        request.headers[name] = signed[name]
    request.context["timestamp"] = signed["x-amz-date"]
    theirs = S3SigV4Auth(Credentials(ACCESS.key_id, ACCESS.secret), "s3", ACCESS.region)
    told = theirs.string_to_sign(request, theirs.canonical_request(request))
    assert signed["Authorization"].rpartition("=")[2] == theirs.signature(told, request)


def _clean(text: str) -> str:
    return text.encode(errors="replace").decode()


def test_a_query_is_in_the_order_in_which_it_is_signed() -> None:
    assert encode_query({"b": "x y", "a": "/", "uploads": ""}) == "a=%2F&b=x%20y&uploads="


def test_the_secret_is_shown_nowhere() -> None:
    assert "wJalr" not in repr(ACCESS)
