"""A blob store in S3, against a server that checks every signature."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from runyard import errors
from runyard.blobs import BlobStore, S3Access, open_blobs
from runyard.blobs.s3 import bucket as buckets
from runyard.blobs.s3 import segments
from runyard.testing.blob_contract import BlobContract, Servers, digest, fresh_key, some_bytes, whole
from tests.labs import waiting
from tests.labs.s3 import S3Lab

Opener = Callable[..., BlobStore]


@pytest.fixture
def lab(s3_lab: Callable[..., S3Lab]) -> S3Lab:
    return s3_lab()


@pytest.fixture
def bucket(lab: S3Lab) -> str:
    return lab.bucket()


@pytest.fixture
def open_store(lab: S3Lab, bucket: str, tmp_path: Path) -> Iterator[Opener]:
    """`open_store()` is the lab's bucket, by somebody who may do everything there."""
    opened: list[BlobStore] = []

    def make(location: str | None = None, access: S3Access | None = None) -> BlobStore:
        home = tmp_path / f"home{len(opened)}"
        opened.append(open_blobs(location or lab.location(bucket), home, access or lab.access))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


class TestS3(BlobContract):
    examples = 10

    @pytest.fixture
    def servers(self, open_store: Opener) -> Servers:
        return open_store(), open_store()


def test_with_tls(s3_lab: Callable[..., S3Lab], open_store: Opener) -> None:
    lab, key = s3_lab(tls=True), fresh_key()
    store = open_store(lab.location(lab.bucket()), lab.access)
    store.check()
    store.files.append(key, "log", 0, b"line\n")
    data = some_bytes(buckets.PART + 1)
    assert whole(store.blobs, store.blobs.add([data])) == data
    assert store.files.read(key, "log", 0, 100) == b"line\n"


def test_the_system_s_file_of_authorities(
    s3_lab: Callable[..., S3Lab], open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = s3_lab(tls=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(lab.authority))
    open_store(lab.location(lab.bucket()), dataclasses.replace(lab.access, ca_file="")).check()


def test_everything_is_below_the_prefix(lab: S3Lab, bucket: str, open_store: Opener) -> None:
    one, other = open_store(lab.location(bucket, "a")), open_store(lab.location(bucket, ""))
    name = one.blobs.add([b"data"])
    one.files.append(fresh_key(), "log", 0, b"line\n")
    other.check()
    assert not other.blobs.has(name)
    assert {key.split("/")[0] for key in lab.keys(bucket)} == {"a"}


def test_a_file_that_was_brought_in_very_many_pieces_has_few_segments(
    lab: S3Lab, bucket: str, open_store: Opener
) -> None:
    files, key = open_store().files, fresh_key()
    for offset in range(60):
        files.append(key, "log", offset, b"x")
    assert len(lab.keys(bucket)) < segments.TOGETHER
    assert files.read(key, "log", 0, 200) == b"x" * 60


def test_large_segments_are_merged_in_parts(
    lab: S3Lab, bucket: str, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "PART", 5 << 20)
    files, key, data = open_store().files, fresh_key(), some_bytes(segments.TOGETHER << 20)
    for offset in range(0, len(data), 1 << 20):
        files.append(key, "log", offset, data[offset : offset + (1 << 20)])
    assert len(lab.keys(bucket)) == 1
    assert files.read(key, "log", 0, len(data)) == data


def test_a_reader_goes_on_when_segments_are_merged_before_its_eyes(
    lab: S3Lab, bucket: str, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, key, data = open_store().files, fresh_key(), some_bytes(15)
    for offset in range(15):
        files.append(key, "log", offset, data[offset : offset + 1])
    parts = lab.keys(bucket)
    read = buckets.Bucket.chunks

    def chunks(self: buckets.Bucket, key: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        if parts and key.endswith("0007"):
            lab.put(bucket, parts[-1].rpartition("/")[0] + f"/{15:016d}-{0:016d}", data)
            for part in parts:
                lab.delete(bucket, part)
            parts.clear()
        return read(self, key, start, end)

    monkeypatch.setattr(buckets.Bucket, "chunks", chunks)
    assert files.read(key, "log", 0, 100) == data
    assert not parts


def test_an_upload_in_parts_that_fails_is_given_up(lab: S3Lab, bucket: str, open_store: Opener) -> None:
    blobs, data = open_store().blobs, some_bytes(buckets.PART + 1)
    blobs.append_partial(digest(b"promised"), len(data), 0, data)
    with pytest.raises(errors.InvalidInput, match="have the digest"):
        blobs.commit_partial(digest(b"promised"), len(data))
    assert lab.unfinished(bucket) == 0 and lab.keys(bucket) == []


def test_uploads_that_nobody_continues_are_cleared(
    lab: S3Lab, bucket: str, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = open_store().blobs
    blobs.append_partial(digest(b"old"), 6, 0, b"o")
    blobs.append_partial(digest(b"new"), 6, 0, b"n")
    assert len(lab.keys(bucket)) == 2
    monkeypatch.setattr("runyard.blobs.s3.store.KEPT_S", -60.0)
    blobs.append_partial(digest(b"newest"), 6, 0, b"n")
    assert len(lab.keys(bucket)) == 1


def test_more_objects_than_one_list_shows(lab: S3Lab, bucket: str, open_store: Opener) -> None:
    files, key = open_store().files, fresh_key()
    files.append(key, "log", 0, b"x")
    [first] = lab.keys(bucket)
    for offset in range(1, 30):
        lab.put(bucket, first.rpartition("/")[0] + f"/{offset + 1:016d}-{offset:016d}", b"x")
    assert files.size(key, "log") == 30
    assert files.read(key, "log", 5, 100) == b"x" * 25
    assert files.append(key, "log", 30, b"y") == 31
    assert len(lab.keys(bucket)) == 1


def test_connections_that_broke_meanwhile_are_made_anew(lab: S3Lab, bucket: str, open_store: Opener) -> None:
    way = lab.relay()
    store = open_store(lab.location(bucket, port=way.port))
    store.blobs.put_many({digest(data): data for data in (b"%d" % number for number in range(20))})
    way.cut()
    with pytest.raises(
        errors.BlobStoreError, match=r"the S3 store at localhost:\d+ does not answer: connection refused"
    ):
        store.blobs.has(digest(b"1"))
    way.mend()
    assert whole(store.blobs, digest(b"1")) == b"1"


def test_an_answer_that_is_cut_is_no_end(lab: S3Lab, bucket: str, open_store: Opener) -> None:
    way, data = lab.relay(), some_bytes(30 << 20)
    name = open_store().blobs.add([data])
    blobs = open_store(lab.location(bucket, port=way.port)).blobs
    with pytest.raises(errors.BlobStoreError, match="does not answer"):
        for _ in blobs.chunks(name):
            way.cut()


# --- what is told at the start -------------------------------------------------------------------------------------


def refusal(store: BlobStore) -> str:
    with pytest.raises(errors.BlobStoreError) as caught:
        store.check()
    assert caught.value.fix
    return caught.value.message


def test_a_wrong_key_id(lab: S3Lab, open_store: Opener) -> None:
    access = dataclasses.replace(lab.access, key_id="AKIAWRONG")
    assert (
        refusal(open_store(access=access))
        == f"the S3 store at localhost:{lab.port} does not know the key id 'AKIAWRONG'"
    )


def test_a_wrong_secret(lab: S3Lab, open_store: Opener) -> None:
    told = refusal(open_store(access=dataclasses.replace(lab.access, secret="wrong")))
    assert told == f"the S3 store at localhost:{lab.port} finds the secret of key id {lab.access.key_id!r} wrong"


def test_an_unknown_bucket(lab: S3Lab, open_store: Opener) -> None:
    told = refusal(open_store(lab.location("no-such-bucket")))
    assert told == f"the S3 store at localhost:{lab.port} has no bucket 'no-such-bucket'"


def test_an_unknown_bucket_is_no_missing_log(lab: S3Lab, open_store: Opener) -> None:
    with pytest.raises(errors.BlobStoreError, match="has no bucket"):
        open_store(lab.location("no-such-bucket")).files.read(fresh_key(), "log", 0, 10)


def test_somebody_who_may_not_delete(lab: S3Lab, bucket: str, open_store: Opener) -> None:
    """S3 answers such a request with 200, and names what it did not delete."""
    allowed = ["s3:GetObject", "s3:ListBucket", "s3:PutObject"]
    store = open_store(access=lab.account({"Effect": "Allow", "Action": allowed, "Resource": "*"}))
    name = store.blobs.add([b"data"])
    for refused in (lambda: store.blobs.remove([name]), store.check):
        with pytest.raises(errors.BlobStoreError, match="does not let key id"):
            refused()
    assert store.blobs.has(name)


def test_somebody_who_may_only_read(lab: S3Lab, bucket: str, open_store: Opener) -> None:
    access = lab.account({"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": "*"})
    told = refusal(open_store(access=access))
    assert told == f"the S3 store at localhost:{lab.port} does not let key id {access.key_id!r} use bucket {bucket!r}"


def test_nobody_listens(open_store: Opener) -> None:
    port = waiting.free_ports(1)[0]
    told = refusal(open_store(f"s3+http://localhost:{port}/bucket"))
    assert told == f"the S3 store at localhost:{port} does not answer: connection refused"


def test_a_host_that_is_not_known(open_store: Opener) -> None:
    assert "the S3 store at no-such-host.invalid does not answer" in refusal(
        open_store("s3+http://no-such-host.invalid/lab")
    )


def test_plaintext_is_spoken_only_where_it_is_written_out(lab: S3Lab, open_store: Opener) -> None:
    told = refusal(open_store("s3://lab", dataclasses.replace(lab.access, endpoint=f"localhost:{lab.port}")))
    assert f"the S3 store at localhost:{lab.port} does not speak TLS" in told


def test_a_certificate_that_is_not_trusted(s3_lab: Callable[..., S3Lab], open_store: Opener) -> None:
    lab = s3_lab(tls=True)
    told = refusal(open_store("s3://lab", dataclasses.replace(lab.access, ca_file="")))
    assert f"the certificate of the S3 store at localhost:{lab.port} is not trusted" in told


def test_a_certificate_for_another_name(s3_lab: Callable[..., S3Lab], open_store: Opener) -> None:
    lab = s3_lab(tls=True)
    told = refusal(open_store("s3://lab", dataclasses.replace(lab.access, endpoint=f"127.0.0.1:{lab.port}")))
    assert f"the certificate of the S3 store at 127.0.0.1:{lab.port} is not trusted" in told


@pytest.fixture
def answering() -> Iterator[Callable[..., tuple[str, list[str]]]]:
    """`answering(status, body)` is a server that answers everything so: its address, and the requests it got."""
    with contextlib.ExitStack() as running:

        def start(status: int, body: bytes) -> tuple[str, list[str]]:
            got: list[str] = []

            class Handler(BaseHTTPRequestHandler):
                def do_PUT(self) -> None:
                    got.append(self.command)
                    self.rfile.read(int(self.headers["Content-Length"]))
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

                def log_message(self, *_: object) -> None: ...

            server = running.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            running.callback(server.shutdown)
            return f"s3+http://127.0.0.1:{server.server_port}/lab", got

        yield start


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        (400, "AuthorizationHeaderMalformed", "bucket 'lab' is in another region than us-east-1"),
        (301, "PermanentRedirect", "bucket 'lab' is in another region than us-east-1"),
        (400, "ExpiredToken", "the session token of key id 'AKIA' has expired"),
        (403, "RequestTimeTooSkewed", "has another time than this machine"),
        (400, "EntityTooLarge", "answered EntityTooLarge: because"),
    ],
)
def test_what_amazon_answers(
    answering: Callable[..., tuple[str, list[str]]], open_store: Opener, status: int, code: str, told: str
) -> None:
    body = f"<Error><Code>{code}</Code><Message>because</Message></Error>".encode()
    location, _ = answering(status, body)
    with pytest.raises(errors.BlobStoreError, match=told):
        open_store(location, S3Access(key_id="AKIA", secret="secret")).check()


def test_a_store_that_is_overloaded_is_asked_a_few_times(
    answering: Callable[..., tuple[str, list[str]]], open_store: Opener
) -> None:
    location, got = answering(503, b"<Error><Code>SlowDown</Code><Message>Reduce your request rate</Message></Error>")
    with pytest.raises(errors.BlobStoreError, match="answered SlowDown: Reduce your request rate"):
        open_store(location, S3Access(key_id="AKIA", secret="secret")).check()
    assert got == ["PUT"] * (1 + buckets.RETRIES)


def test_a_large_blob_is_not_held_in_memory(lab: S3Lab, bucket: str, open_store: Opener) -> None:
    """Of 200 MB a process holds some parts, whichever way they go."""
    program = (
        "import re, sys; from pathlib import Path; from runyard.blobs import S3Access, open_blobs;"
        "store = open_blobs(sys.argv[1], Path(sys.argv[2]), S3Access(key_id=sys.argv[3], secret=sys.argv[4]));"
        "name = store.blobs.add(bytes([i]) * (1 << 20) for i in range(200));"
        "assert sum(map(len, store.blobs.chunks(name))) == 200 << 20;"
        "print(re.search('VmHWM: *([0-9]+)', Path('/proc/self/status').read_text().replace(chr(9), ' '))[1])"
    )
    access = [lab.access.key_id, lab.access.secret]
    command = [sys.executable, "-c", program, lab.location(bucket), tempfile.mkdtemp(dir=lab.root), *access]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 120 << 10  # kB; most of it is Python and the library


def test_a_file_of_authorities_that_is_not_there(tmp_path: Path, open_store: Opener) -> None:
    for path in (tmp_path / "none.pem", tmp_path / "no.pem"):
        (tmp_path / "no.pem").write_text("no certificate")
        with pytest.raises(errors.ConfigError, match="s3_ca_file"):
            open_store("s3://lab", S3Access(endpoint="localhost:1", ca_file=str(path))).check()
