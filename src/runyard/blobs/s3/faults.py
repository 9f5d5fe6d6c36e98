"""What S3 says when it refuses, as sentences for people."""

from __future__ import annotations

import re
import ssl

from runyard import errors
from runyard.blobs.access import S3Access
from runyard.blobs.s3.address import Address

_WANTED = "s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket"


def of_line(address: Address, error: Exception) -> errors.BlobStoreError:
    """No connection, or one that broke."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return errors.BlobStoreError(
            f"the certificate of {address} is not trusted: {error.verify_message}",
            "name the file with its authority in `s3_ca_file`",
        )
    if isinstance(error, ssl.SSLError):
        told = f"{address} does not speak TLS: {error.reason or error}"
        return errors.BlobStoreError(told, f"where plaintext is meant: s3+http://{address.host}/{address.bucket}")
    words = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return errors.BlobStoreError(f"{address} does not answer: {words.lower()}", "check `blobs` and `s3_endpoint`")


def of_answer(address: Address, access: S3Access, status: int, body: bytes) -> errors.BlobStoreError:
    code = code_of(body) or ("AccessDenied" if status == 403 else str(status))
    known = {
        "InvalidAccessKeyId": (f"{address} does not know the key id {access.key_id!r}", "check `s3_key_id`"),
        "SignatureDoesNotMatch": (
            f"{address} finds the secret of key id {access.key_id!r} wrong",
            "check `s3_secret`, or the file that `s3_secret_file` names",
        ),
        "NoSuchBucket": (f"{address} has no bucket {address.bucket!r}", "create it, or check `blobs`"),
        "AccessDenied": (
            f"{address} does not let key id {access.key_id!r} use bucket {address.bucket!r}", f"allow it {_WANTED}"
        ),
        "RequestTimeTooSkewed": (f"{address} has another time than this machine", "set the clock"),
    }  # fmt: skip
    for other in ("AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException"):
        known[other] = (f"bucket {address.bucket!r} is in another region than {access.region}", "check `s3_region`")
    told = f"{address} answered {code}: {_tag(body, 'Message') or 'it does not say why'}"
    return errors.BlobStoreError(*known.get(code, (told, "")))


def code_of(body: bytes) -> str:
    """Empty where there is no body, as in answers to HEAD."""
    return _tag(body, "Code")


def _tag(body: bytes, name: str) -> str:
    found = re.search(rf"<{name}>([^<]*)</{name}>", body[:10000].decode(errors="replace"))
    return found[1] if found else ""
