"""`runyard submit --input` against a real yard, and its secret, which is seen nowhere."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.model import exit_codes
from tests.labs.web import WebServer
from tests.labs.yard import Yard

VALUE = "grep-for-this-value"


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as made:
        yield made


@pytest.fixture
def yard(web: WebServer) -> Iterator[Yard]:
    made = Yard(cpus=2, log_level="debug")
    kept = made.home.parent / f"{made.home.name}.secret"
    kept.write_text(f"{VALUE}\n")
    kept.chmod(0o600)
    (made.home / "config.toml").write_text(f'[secrets.store]\nfile = "{kept}"\nhosts = ["{web.host}"]\n')
    try:
        yield made.start()
    finally:
        made.remove()
        kept.unlink()


def seen_by_anybody(yard: Yard) -> Iterator[tuple[str, bytes]]:
    """Every file of the yard, and what its processes were started with; what goes meanwhile nobody sees."""
    found = [Path(folder, name) for folder, _, names in os.walk(yard.home) for name in names]
    found += [Path(f"/proc/{pid}/{name}") for pid in yard.processes() for name in ("cmdline", "environ")]
    for path in found:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if path.is_file() and not path.is_symlink():
                yield str(path), path.read_bytes()


def test_a_secret_brings_the_file_and_is_seen_nowhere(yard: Yard, web: WebServer, tmp_path: Path) -> None:
    allowed = f"Bearer {VALUE}"
    web.answers["/set.csv"] = lambda headers: (
        (200, {}, b"a,b\n") if headers.get("Authorization") == allowed else (401, {}, b"")
    )
    script = 'env; cat "$RUNYARD_INPUTS/data.csv"; while [ ! -e "$RUNYARD_INPUTS/../go" ]; do sleep 0.1; done'
    words = ("--no-code", "--input", f"{web.url('/set.csv')}=data.csv,secret=store", "--", "sh", "-c", script)
    number = int(yard.cli("submit", "--quiet", *words, cwd=tmp_path).stdout)
    told = yard.cli("show", str(number), "--json").stdout
    while '"running"' not in told:
        assert '"failed"' not in told, told
        told = yard.cli("show", str(number), "--json").stdout
    during = dict(seen_by_anybody(yard))
    (go,) = yard.home.glob(f"sites/*/runs/{number}/a1")
    (go / "go").touch()
    assert yard.cli("wait", str(number)).returncode == 0
    said = [yard.cli(*asked, str(number)).stdout for asked in (("logs",), ("show",), ("show", "--json"), ("events",))]
    assert "a,b" in said[0]
    assert "fetched the input data.csv sha256:" in said[3]
    assert json.loads(said[2])["spec"]["inputs"] == [{"url": web.url("/set.csv"), "to": "data.csv", "secret": "store"}]
    holding = [name for name, data in [*during.items(), *seen_by_anybody(yard)] if VALUE.encode() in data]
    assert holding == []
    assert VALUE not in "".join([told, yard.log, *said])
    assert web.asked == [("/set.csv", allowed)]


def test_a_refusal_names_the_file_and_the_status(yard: Yard, web: WebServer, tmp_path: Path) -> None:
    web.answers["/set.csv"] = (403, {}, b"")
    words = ("--no-code", "--input", f"{web.url('/set.csv')}?key=1,secret=store", "--", "true")
    number = int(yard.cli("submit", "--quiet", *words, cwd=tmp_path).stdout)
    assert yard.cli("wait", str(number)).returncode == exit_codes.OTHER_FAILURE
    run = json.loads(yard.cli("show", str(number), "--json").stdout)
    assert run["reason"] == "staging"
    assert run["detail"] == f"its inputs cannot be fetched: {web.url('/set.csv')}: its server answers 403 Forbidden"
    assert VALUE not in json.dumps(run) + yard.log
