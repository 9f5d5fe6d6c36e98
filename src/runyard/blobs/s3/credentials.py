"""Which credentials sign the requests.

`s3_key_id`    the key of the settings; nothing of the environment is mixed into it
AWS_PROFILE    a profile of ~/.aws, read by boto3: keys, session tokens, roles, single sign-on, credential_process
otherwise      obstore: AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, a web identity
               (AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN), a container's role, the role of the EC2 instance
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from runyard import errors
from runyard.blobs.s3_access import S3Access

if TYPE_CHECKING:
    from obstore.store import S3Credential, S3CredentialProvider


def credential_provider(access: S3Access) -> S3CredentialProvider | None:
    """None: obstore finds them by itself. What it is given is asked again when it expires."""
    if access.key_id:
        return _Key(access)
    if os.environ.get("AWS_PROFILE"):
        return _profile()
    return None


def credential_name(access: S3Access) -> str:
    """For error messages."""
    if access.key_id:
        return f"key id {access.key_id!r}"
    if profile := os.environ.get("AWS_PROFILE"):
        return f"profile {profile!r}"
    if key_id := os.environ.get("AWS_ACCESS_KEY_ID"):
        return f"key id {key_id!r}"
    return "the role of this machine"


class _Key:
    """As a provider and not as configuration: to that obstore would add the session token of the environment."""

    def __init__(self, access: S3Access) -> None:
        self._access = access

    def __call__(self) -> S3Credential:
        key_id, secret = self._access.key_id, self._access.secret
        return {"access_key_id": key_id, "secret_access_key": secret, "token": None, "expires_at": None}


def _profile() -> S3CredentialProvider:
    name = os.environ["AWS_PROFILE"]
    try:
        from botocore.exceptions import BotoCoreError
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        told = f"AWS_PROFILE is {name!r}, and the library that reads profiles is missing"
        raise errors.ConfigError(told, "pip install boto3, or set `s3_key_id` and `s3_secret_file`") from None
    try:
        return Boto3CredentialProvider()
    except (BotoCoreError, ValueError) as error:
        told = f"the profile {name!r} of AWS_PROFILE has no credentials: {error}"
        raise errors.ConfigError(told, "check ~/.aws/config and ~/.aws/credentials") from None
