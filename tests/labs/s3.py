"""An S3 store of our own: moto's server, which checks signatures and policies as Amazon does."""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

from runyard.blobs import S3Access
from tests.labs import waiting
from tests.labs.daemons import Daemons
from tests.labs.rabbitmq import certificates
from tests.labs.rabbitmq.lab import Relay

REGION = "us-east-1"
_START_S = 180
_POLICY = {"Effect": "Allow", "Action": "*", "Resource": "*"}


class S3Lab:
    """
    access      of somebody who may do everything
    authority   the file with the authority of the server's certificate, where `tls` was asked for
    """

    access: S3Access

    def __init__(self, *, tls: bool = False) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="ry-s3-"))
        self.port = waiting.free_ports(1)[0]
        self.authority = self.root / "certificates" / "authority.pem"
        self._tls = tls
        self._daemons = Daemons(self.root, leftovers=[self.root])
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._daemons.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def tidy(self) -> None:
        """Buckets are not used twice, and what is in them is in memory."""

    def location(self, bucket: str, prefix: str = "yard", port: int | None = None) -> str:
        if self._tls:
            return f"s3://{bucket}/{prefix}"
        return f"s3+http://localhost:{port or self.port}/{bucket}/{prefix}"

    def bucket(self) -> str:
        """The name of a new one."""
        name = f"bucket-{next(self._numbers)}"
        self._clients["s3"].create_bucket(Bucket=name)
        return name

    def keys(self, bucket: str) -> list[str]:
        pages = self._clients["s3"].get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return [item["Key"] for page in pages for item in page.get("Contents", [])]

    def unfinished(self, bucket: str) -> int:
        """Uploads in parts that were neither completed nor given up."""
        return len(self._clients["s3"].list_multipart_uploads(Bucket=bucket).get("Uploads", []))

    def delete(self, bucket: str, key: str) -> None:
        self._clients["s3"].delete_object(Bucket=bucket, Key=key)

    def put(self, bucket: str, key: str, data: bytes) -> None:
        self._clients["s3"].put_object(Bucket=bucket, Key=key, Body=data)

    def account(self, *statements: dict[str, Any]) -> S3Access:
        """Somebody with a policy of these statements."""
        name, iam = f"user-{next(self._numbers)}", self._clients["iam"]
        iam.create_user(UserName=name)
        key = iam.create_access_key(UserName=name)["AccessKey"]
        iam.put_user_policy(UserName=name, PolicyName="own", PolicyDocument=_document(*statements))
        return S3Access(
            key_id=key["AccessKeyId"], secret=key["SecretAccessKey"], region=REGION,
            endpoint=f"localhost:{self.port}", ca_file=str(self.authority) if self._tls else "",
        )  # fmt: skip

    def role(self) -> str:
        """The name (ARN) of one that may do everything, and that everybody may assume."""
        name, iam = f"role-{next(self._numbers)}", self._clients["iam"]
        trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
        made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=_document(trust))
        iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=_document(_POLICY))
        return str(made["Role"]["Arn"])

    def temporary(self) -> dict[str, str]:
        """Credentials of a role, as STS hands them out: AccessKeyId, SecretAccessKey, SessionToken."""
        found = self._clients["sts"].assume_role(RoleArn=self.role(), RoleSessionName="session")["Credentials"]
        return {name: str(found[name]) for name in ("AccessKeyId", "SecretAccessKey", "SessionToken")}

    def relay(self) -> Relay:
        """A way to it that can be cut."""
        return Relay(self._daemons, f"relay{next(self._numbers)}", self.port)

    def _start(self) -> None:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        if self._tls:
            certificates.make(self.authority.parent)
            command += ["-c", str(self.authority.with_name("server.pem"))]
            command += ["-k", str(self.authority.with_name("server.key"))]
        # The first three requests make the account that signs all others. Lists come in pages of a few objects.
        self._daemons.spawn("moto", command, {"INITIAL_NO_AUTH_ACTION_COUNT": "3", "MOTO_S3_DEFAULT_MAX_KEYS": "7"})
        waiting.until(lambda: waiting.accepts("127.0.0.1", self.port), "S3 listening", timeout_s=_START_S)
        self.access = S3Access(key_id="nobody", secret="nothing", region=REGION)
        self._clients = self._connect("iam")
        self.access = self.account(_POLICY)
        self._clients = self._connect("iam", "s3", "sts")

    def _connect(self, *services: str) -> dict[str, Any]:
        """All of them now: boto reads the environment for each, and a test's may name a profile that is not there."""
        import boto3

        session = boto3.session.Session()
        own = {
            "endpoint_url": f"http{'s' if self._tls else ''}://localhost:{self.port}", "region_name": REGION,
            "aws_access_key_id": self.access.key_id, "aws_secret_access_key": self.access.secret,
            "verify": str(self.authority) if self._tls else None,
        }  # fmt: skip
        return {service: session.client(service, **own) for service in services}


def _document(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
