"""A yard whose files and logs are in a bucket of S3."""

from __future__ import annotations

import hashlib
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.witness import until
from tests.labs import waiting
from tests.labs.s3 import S3Lab
from tests.labs.yard import Yard

SIZE = 20 << 20
TRAIN = f"""
import os, pathlib
print("training")
pathlib.Path(os.environ["OUTPUT_DIR"], "model.bin").write_bytes(bytes(range(256)) * {SIZE // 256})
print("trained")
"""


@pytest.fixture
def lab(s3_lab: Callable[..., S3Lab]) -> S3Lab:
    return s3_lab()


@pytest.fixture
def settings(lab: S3Lab, tmp_path: Path) -> dict[str, Any]:
    """Of a yard with a bucket of its own."""
    (tmp_path / "secret").write_text(f"{lab.access.secret}\n")
    return {
        "cpus": 2, "blobs": lab.location(lab.bucket()), "s3_key_id": lab.access.key_id,
        "s3_secret_file": tmp_path / "secret",
    }  # fmt: skip


@pytest.fixture
def unborn() -> Iterator[Callable[..., Yard]]:
    """A yard that is not started."""
    made: list[Yard] = []

    def make(**settings: Any) -> Yard:
        made.append(Yard(**settings))
        return made[-1]

    yield make
    for yard in made:
        yard.remove()


def test_everything_about_a_run_is_in_the_bucket(
    make_yard: Callable[..., Yard], settings: dict[str, Any], tmp_path: Path
) -> None:
    yard = make_yard(**settings)
    done = yard.cli("submit", "--follow", "--", "python3", "-c", TRAIN)
    assert (done.returncode, done.stdout.splitlines()[-2:]) == (0, ["training", "trained"]), done
    yard.restart()
    assert yard.cli("logs", "last").stdout == "training\ntrained\n"
    assert yard.cli("fetch", "last", "--output", str(tmp_path / "got")).returncode == 0
    [model] = (tmp_path / "got").rglob("model.bin")
    assert model.read_bytes() == bytes(range(256)) * (SIZE // 256)
    assert _part(yard, model, 1000, 1999) == model.read_bytes()[1000:2000]
    assert not (yard.home / "blobs").exists() and not (yard.home / "logs").exists()
    assert not list((yard.home / "incoming").iterdir())
    assert Path(settings["s3_secret_file"]).read_text().strip() not in yard.log


def _part(yard: Yard, model: Path, first: int, last: int) -> bytes:
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    headers = {"Authorization": f"Bearer {yard.token}", "Range": f"bytes={first}-{last}"}
    request = urllib.request.Request(f"{yard.url}/api/v1/blobs/sha256:{digest}", headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 206
        return bytes(answer.read())


def test_a_run_outlives_the_absence_of_the_bucket(
    make_yard: Callable[..., Yard], lab: S3Lab, settings: dict[str, Any], tmp_path: Path
) -> None:
    way, go, over = lab.relay(), tmp_path / "go", tmp_path / "over"
    yard = make_yard(**{**settings, "blobs": lab.location(lab.bucket(), port=way.port)})
    body = f"echo one; until [ -e {go} ]; do sleep 0.1; done; echo two; echo result > $OUTPUT_DIR/result; touch {over}"
    run = yard.client().submit(command=["/bin/sh", "-c", body])
    until(lambda: run.logs() == "one\n", what="the first line in the bucket")
    way.cut()
    go.touch()
    until(over.exists, what="the run over")
    until(lambda: "does not answer: connection refused" in yard.log, what="the yard noticing")
    way.mend()
    assert run.wait(timeout=120).state == "succeeded"
    assert run.logs() == "one\ntwo\n"
    assert [output.path for output in run.outputs()] == ["result"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"s3_secret": "wrong", "s3_secret_file": ""}, "finds the secret of key id"),
        ({"s3_key_id": "AKIAWRONG"}, "does not know the key id 'AKIAWRONG'"),
        ({"blobs": "s3+http://localhost:{port}/no-such-bucket"}, "has no bucket 'no-such-bucket'"),
        ({"blobs": "s3+http://localhost:{free}/bucket"}, "does not answer: connection refused"),
        ({"blobs": "s3://Bucket"}, "'Bucket' is not the name of a bucket"),
        ({"s3_secret_file": "/no/such/file"}, "cannot be read from /no/such/file: No such file or directory"),
        ({"blobs": "/proc/blobs"}, "/proc/blobs cannot store blobs: No such file or directory"),
    ],
)
def test_what_is_wrong_is_told_at_the_start(
    unborn: Callable[..., Yard], lab: S3Lab, settings: dict[str, Any], wrong: dict[str, str], said: str
) -> None:
    ports = {"port": lab.port, "free": waiting.free_ports(1)[0]}
    yard = unborn(**{**settings, **{name: value.format(**ports) for name, value in wrong.items()}})
    done = yard.cli("up")
    assert done.returncode in (1, 2), done
    assert said in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2, done.stderr
