"""Credentials for S3 that are not in the settings, against a server that checks them."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from runyard import errors
from runyard.blobs import BlobStore, S3Access, open_blobs
from tests.labs import waiting
from tests.labs.s3 import S3Lab


@pytest.fixture
def lab(s3_lab: Callable[..., S3Lab]) -> S3Lab:
    return s3_lab()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Nothing of the machine's own credentials, and no instance that would hand some out."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://127.0.0.1:{waiting.free_ports(1)[0]}")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return monkeypatch


def opened(lab: S3Lab, tmp_path: Path, access: S3Access | None = None) -> BlobStore:
    return open_blobs(lab.location(lab.bucket()), tmp_path, access or S3Access())


def refusal(store: BlobStore) -> errors.BlobStoreError:
    with pytest.raises(errors.BlobStoreError) as caught:
        store.check()
    return caught.value


def test_a_key_of_the_environment(lab: S3Lab, tmp_path: Path, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_ACCESS_KEY_ID", lab.access.key_id)
    environment.setenv("AWS_SECRET_ACCESS_KEY", lab.access.secret)
    opened(lab, tmp_path).check()
    environment.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    assert f"the secret of key id {lab.access.key_id!r} wrong" in refusal(opened(lab, tmp_path)).message


def test_a_session_token_of_the_environment(lab: S3Lab, tmp_path: Path, environment: pytest.MonkeyPatch) -> None:
    found = lab.temporary()
    environment.setenv("AWS_ACCESS_KEY_ID", found["AccessKeyId"])
    environment.setenv("AWS_SECRET_ACCESS_KEY", found["SecretAccessKey"])
    environment.setenv("AWS_SESSION_TOKEN", found["SessionToken"])
    opened(lab, tmp_path).check()
    environment.setenv("AWS_SESSION_TOKEN", "another")
    told = refusal(opened(lab, tmp_path))
    assert "does not accept the session token of key id" in told.message and "AWS_SESSION_TOKEN" in told.fix


def test_nothing_of_the_environment_is_mixed_into_the_settings(
    lab: S3Lab, tmp_path: Path, environment: pytest.MonkeyPatch
) -> None:
    elsewhere = f"http://127.0.0.1:{waiting.free_ports(1)[0]}"
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "AKIAOTHER"), ("AWS_SECRET_ACCESS_KEY", "other"), ("AWS_SESSION_TOKEN", "other"),
        ("AWS_PROFILE", "other"), ("AWS_REGION", "eu-north-1"), ("AWS_ENDPOINT_URL_S3", elsewhere),
        ("AWS_ENDPOINT_URL", elsewhere), ("AWS_BUCKET", "other"), ("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true"),
        ("AWS_SKIP_SIGNATURE", "true"),
    ):  # fmt: skip
        environment.setenv(name, value)
    opened(lab, tmp_path, lab.access).check()


@pytest.mark.parametrize("profile", ["keys", "role"])
def test_a_profile(lab: S3Lab, tmp_path: Path, environment: pytest.MonkeyPatch, profile: str) -> None:
    (tmp_path / "credentials").write_text(
        f"[keys]\naws_access_key_id = {lab.access.key_id}\naws_secret_access_key = {lab.access.secret}\n"
    )
    (tmp_path / "config").write_text(
        f"[profile role]\nrole_arn = {lab.role()}\nsource_profile = keys\nregion = us-east-1\n"
    )
    environment.setenv("AWS_ENDPOINT_URL_STS", f"http://localhost:{lab.port}")
    environment.setenv("AWS_PROFILE", profile)
    opened(lab, tmp_path).check()


def test_a_profile_that_is_not_there(lab: S3Lab, tmp_path: Path, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_PROFILE", "lab")
    with pytest.raises(errors.ConfigError, match="the profile 'lab' of AWS_PROFILE has no credentials"):
        opened(lab, tmp_path)


def test_a_profile_without_the_library_that_reads_them(
    lab: S3Lab, tmp_path: Path, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv("AWS_PROFILE", "lab")
    environment.setitem(sys.modules, "botocore.exceptions", None)  # as where it is not installed
    with pytest.raises(errors.ConfigError) as caught:
        opened(lab, tmp_path)
    assert "pip install boto3" in caught.value.fix


@pytest.fixture
def instance(lab: S3Lab) -> Iterator[str]:
    """The address of a metadata service as EC2 has it, version 2, with the credentials of a role."""
    found = {**lab.temporary(), "Code": "Success", "Type": "AWS-HMAC", "LastUpdated": "2026-01-01T00:00:00Z"}
    answers = {
        "/latest/api/token": b"a-token",
        "/latest/meta-data/iam/security-credentials/": b"trainer",
        "/latest/meta-data/iam/security-credentials/trainer": json.dumps(
            {**found, "Token": found["SessionToken"], "Expiration": "2126-01-01T00:00:00Z"}
        ).encode(),
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            allowed = self.command == "PUT" or self.headers["X-aws-ec2-metadata-token"] == "a-token"
            body = answers.get(self.path, b"") if allowed else b""
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_PUT = do_GET

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_role_of_the_instance(lab: S3Lab, tmp_path: Path, environment: pytest.MonkeyPatch, instance: str) -> None:
    environment.setenv("AWS_METADATA_ENDPOINT", instance)
    opened(lab, tmp_path).check()


def test_no_credentials_at_all(lab: S3Lab, tmp_path: Path) -> None:
    told = refusal(opened(lab, tmp_path))
    assert told.message == f"there are no credentials for the S3 store at localhost:{lab.port}: connection refused"
    assert "s3_key_id" in told.fix and "AWS_PROFILE" in told.fix


def test_half_a_key(lab: S3Lab, tmp_path: Path, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_ACCESS_KEY_ID", lab.access.key_id)
    with pytest.raises(errors.BlobStoreError, match=r"no credentials for the S3 store .*: Missing SecretAccessKey"):
        opened(lab, tmp_path)


def test_a_web_identity_whose_token_is_not_there(lab: S3Lab, tmp_path: Path, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    environment.setenv("AWS_ROLE_ARN", lab.role())
    told = refusal(opened(lab, tmp_path)).message
    assert told.startswith("there are no credentials") and str(tmp_path / "token") in told


def test_without_the_library(tmp_path: Path, environment: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("runyard.blobs.s3")]:
        environment.delitem(sys.modules, name)
    environment.setitem(sys.modules, "obstore", None)  # as where it is not installed
    with pytest.raises(errors.ConfigError) as caught:
        open_blobs("s3://lab", tmp_path)
    assert caught.value.fix == "pip install 'runyard[s3]'"
