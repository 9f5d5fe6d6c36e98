"""obstore's errors as sentences for people.

obstore has few classes of errors and puts the rest into their text: the address it asked, the status and body of the
answer, and the cause as Rust shows it for debugging. What is not recognized in it is shown by its first line.
"""

from __future__ import annotations

import re

from runyard import errors
from runyard.blobs.s3.address import S3Address
from runyard.blobs.s3.credentials import credential_name
from runyard.blobs.s3_access import S3Access

_WANTED = "s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket"
_CREDENTIALS = "set `s3_key_id` and `s3_secret_file`, or AWS_ACCESS_KEY_ID, AWS_PROFILE or a role of the machine"
_ASKED = re.compile(r"Error performing [A-Z]+ (\S+) in ")
_NO_CREDENTIALS = re.compile(r"[Cc]redential|Missing\w*Key|token file")
_STATUS = re.compile(r"non-2xx status code: (\d+)")
_REDIRECT = "Received redirect without LOCATION"  # obstore shows no code then
_CODE = re.compile(r"<Code>([^<]*)</Code>|\(code: (\w+)\)")  # of an answer; of one object that was not deleted
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_CAUSES = (
    re.compile(r'message: "([^"]+)"'),  # of the operating system
    re.compile(r'error: "failed to lookup address information: ([^"]+)"'),
    re.compile(r"(TimedOut)"),
)


class BehindTheEnd(Exception):
    """The object ends before the bytes that were asked for."""


def is_no_object(error: FileNotFoundError) -> bool:
    """And not a missing bucket, or a missing file of this machine. An answer to HEAD has no code."""
    return str(error).startswith("Object at location") and _code(str(error)) in ("", "NoSuchKey")


def translate(address: S3Address, access: S3Access, error: Exception) -> Exception:
    text = str(error)
    if isinstance(error, FileNotFoundError) and not _STATUS.search(text):
        return error  # a file of this machine
    if not _is_about(address, text):
        return _no_credentials(address, text)
    if _STATUS.search(text) or _code(text) or _REDIRECT in text:
        return _of_answer(address, access, text)
    return _of_connection(address, text)


def _is_about(address: S3Address, text: str) -> bool:
    """Credentials are asked of other addresses, and some are found to be missing without asking."""
    if asked := _ASKED.search(text):
        return asked[1].startswith(address.url)
    return not _NO_CREDENTIALS.search(text)


def _no_credentials(address: S3Address, text: str) -> errors.BlobStoreError:
    return errors.BlobStoreError(f"there are no credentials for {address}: {_summary(text)}", _CREDENTIALS)


def _of_connection(address: S3Address, text: str) -> errors.BlobStoreError:
    """No connection, or one that broke."""
    if bad := re.search(r"InvalidCertificate\(\s*(\w+)", text):
        return errors.BlobStoreError(
            f"the certificate of {address} is not trusted: {_words(bad[1])}",
            "name the file with its authority in `s3_ca_file`",
        )
    if bad := re.search(r"InvalidMessage\(\s*(\w+)", text):
        return errors.BlobStoreError(
            f"{address} does not speak TLS: {_words(bad[1])}",
            f"where plaintext is meant: s3+http://{address.host}/{address.bucket}",
        )
    return errors.BlobStoreError(f"{address} does not answer: {_summary(text)}", "check `blobs` and `s3_endpoint`")


def _of_answer(address: S3Address, access: S3Access, text: str) -> Exception:
    status = found[1] if (found := _STATUS.search(text)) else ""
    code = _code(text) or {"": "PermanentRedirect", "403": "AccessDenied"}.get(status, status)
    if status == "416":
        return BehindTheEnd()
    message = found[1] if (found := _MESSAGE.search(text)) else "no reason given"
    told = f"{address} answered {code}: {message}"
    return errors.BlobStoreError(*_known(address, access).get(code, (told, "")))


def _known(address: S3Address, access: S3Access) -> dict[str, tuple[str, str]]:
    user = credential_name(access)
    elsewhere = (f"bucket {address.bucket!r} is in another region than {access.region}", "check `s3_region`")
    return {
        "InvalidAccessKeyId": (f"{address} does not know the {user}", "check `s3_key_id`"),
        "SignatureDoesNotMatch": (
            f"{address} finds the secret of {user} wrong", "check `s3_secret`, or the file that `s3_secret_file` names"
        ),
        "InvalidToken": (f"{address} does not accept the session token of {user}", "check AWS_SESSION_TOKEN"),
        "ExpiredToken": (f"the session token of {user} has expired", "get a new one, and restart the yard with it"),
        "NoSuchBucket": (f"{address} has no bucket {address.bucket!r}", "create it, or check `blobs`"),
        "AccessDenied": (f"{address} does not let {user} use bucket {address.bucket!r}", f"allow it {_WANTED}"),
        "RequestTimeTooSkewed": (f"{address} has another time than this machine", "set the clock"),
        "AuthorizationHeaderMalformed": elsewhere,
        "PermanentRedirect": elsewhere,
        "IllegalLocationConstraintException": elsewhere,
    }  # fmt: skip


def _code(text: str) -> str:
    found = _CODE.search(text)
    return (found[1] or found[2]) if found else ""


def _summary(text: str) -> str:
    """The cause, or else what obstore says first."""
    for cause in _CAUSES:
        if found := cause.search(text):
            return _words(found[1])
    first = text.partition("\n")[0]
    return re.sub(r"^.* - ", "", first).removeprefix("Generic S3 error: ")[:300]


def _words(name: str) -> str:
    """`UnknownIssuer` as `unknown issuer`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
