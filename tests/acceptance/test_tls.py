"""A proxy with TLS before the yard: people and agents need no more than to reach it by https."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.acceptance.pool import SITE, Pool
from tests.labs import waiting
from tests.labs.rabbitmq import certificates, relay
from tests.labs.yard import Yard

pytestmark = pytest.mark.component("openssl")  # which makes the certificates

TRAIN = """
import os, pathlib, time
print("first", flush=True)
while not os.path.exists(os.environ["GO"]):
    time.sleep(0.05)
pathlib.Path(os.environ["OUTPUT_DIR"], "model.bin").write_bytes(bytes(range(256)) * 4096)
print("last")
"""


@dataclass(frozen=True, kw_only=True)
class Lab:
    """A yard, the proxy before it, and a person who knows the address of the proxy alone."""

    yard: Yard
    port: int
    tls: Path  # where the certificates are
    person: dict[str, str] = field(default_factory=dict)  # the environment

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def authority(self) -> str:
        return str(self.tls / "authority.pem")

    def cli(self, *words: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            Yard.command(*words), env={**self.person, **env}, cwd=cwd, capture_output=True, text=True, timeout=240,
            check=False,
        )  # fmt: skip

    def refused(self, *words: str, **env: str) -> list[str]:
        """The sentence and its fix."""
        done = self.cli(*words, **env)
        assert (done.returncode != 0, done.stdout) == (True, ""), done
        message, fix = done.stderr.splitlines()
        return [message.removeprefix("error: "), fix.strip().removeprefix("fix: ")]


@pytest.fixture
def lab(make_yard: Callable[..., Yard], tmp_path: Path) -> Iterator[Lab]:
    yard = make_yard(local_site="named")
    certificates.make(tmp_path / "tls")
    (port,) = waiting.free_ports(1)
    target = yard.url.rpartition(":")[2]
    words = [str(port), target, str(tmp_path / "tls" / "server.pem"), str(tmp_path / "tls" / "server.key")]
    proxy = subprocess.Popen([sys.executable, "-I", "-S", relay.__file__, *words])
    made = Lab(yard=yard, port=port, tls=tmp_path / "tls")
    token = yard.cli("token", "create", "ada", "--quiet").stdout.strip()
    made.person.update(yard.env, RUNYARD_HOME=str(tmp_path / "laptop"), RUNYARD_URL=made.url, RUNYARD_TOKEN=token)
    try:
        waiting.until(lambda: waiting.accepts("localhost", port), "the proxy answers")
        yield made
    finally:
        proxy.kill()
        proxy.wait()


def test_a_run_from_submit_to_fetch_by_tls(lab: Lab, tmp_path: Path) -> None:
    """The person trusts by SSL_CERT_FILE, the agent by its settings."""
    pool, go = Pool(lab.yard), tmp_path / "go"
    pool.lead_to(lab.url)
    (pool.home("one") / "config.toml").write_text(f'ca_file = "{lab.authority}"\n')
    lab.person.update(SSL_CERT_FILE=lab.authority)
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(TRAIN)
    with pool.agent("one") as agent:
        words = ["--site", SITE, "--code", ".", "-e", f"GO={go}", "--", sys.executable, "train.py"]
        run = lab.cli("submit", "-q", *words, cwd=project).stdout.strip()
        with subprocess.Popen(
            Yard.command("logs", run, "-f"), env=lab.person, stdout=subprocess.PIPE, text=True
        ) as following:
            assert following.stdout is not None
            assert following.stdout.readline() == "first\n", pool.log("one")
            check_sockets(agent.pid, lab.port)
            go.touch()
            assert following.stdout.read() == "last\n"
        assert lab.cli("wait", run).returncode == 0
        assert lab.cli("fetch", run, "-o", "results", cwd=tmp_path).returncode == 0
    assert (tmp_path / "results" / "model.bin").read_bytes() == bytes(range(256)) * 4096


def test_a_tick_of_cron_knows_whom_to_trust(lab: Lab) -> None:
    """Cron gives it no environment: address, authority and token come from the files of its home."""
    pool = Pool(lab.yard)
    home = pool.home("cron")
    home.chmod(0o700)
    (home / "config.toml").write_text(f'url = "{lab.url}"\nca_file = "{lab.authority}"\n')
    (home / "token").write_text(pool.token)
    (home / "token").chmod(0o600)
    run = lab.cli("submit", "-q", "--site", SITE, "--", "echo", "hello", SSL_CERT_FILE=lab.authority).stdout.strip()
    printed = subprocess.run(
        Yard.command("check", "--site", SITE, "--dir", str(home / "site"), "--crontab"), capture_output=True, text=True,
        env={**lab.yard.env, "RUNYARD_HOME": str(home)}, timeout=120, check=True,
    ).stdout  # fmt: skip
    tick = ["env", "-i", "/bin/sh", "-c", printed.strip().removeprefix("* * * * * ")]

    def is_over() -> bool:
        done = subprocess.run(tick, capture_output=True, text=True, timeout=240, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return lab.yard.cli("wait", run, "--timeout", "1s").returncode == 0

    waiting.until(is_over, "ticks that execute it and tell its end", timeout_s=120)
    assert lab.yard.cli("logs", run).stdout == "hello\n"


def check_sockets(agent: int, port: int) -> None:
    """Nobody can dial in to an agent, and it dials the proxy alone."""

    def open_ones() -> list[Any]:
        return psutil.Process(agent).net_connections(kind="tcp")

    found = waiting.until(lambda: open_ones() if any(one.raddr for one in open_ones()) else [], "the agent connected")
    assert {connection.raddr.port for connection in found if connection.raddr} == {port}
    assert not [connection for connection in found if connection.status == psutil.CONN_LISTEN]


@pytest.mark.parametrize("words", [("ls",), ("submit", "--", "true"), ("agent", "--site", "pool")], ids=lambda w: w[0])
def test_a_certificate_that_is_not_trusted_is_told_with_its_fix(lab: Lab, words: tuple[str, ...]) -> None:
    message, fix = lab.refused(*words)
    assert message.startswith(f"the certificate of the yard at {lab.url} is not trusted: ")
    assert fix == "name the file with its authority: ca_file in config.toml, or the variable SSL_CERT_FILE"


def test_a_certificate_for_another_name(lab: Lab) -> None:
    url = f"https://127.0.0.1:{lab.port}"
    message, fix = lab.refused("ls", RUNYARD_URL=url, SSL_CERT_FILE=lab.authority)
    assert message.startswith(f"the certificate of the yard at {url} is not trusted: IP address mismatch")
    assert fix == "write the host in RUNYARD_URL as the certificate names it"


def test_a_yard_without_tls(lab: Lab) -> None:
    url = lab.yard.url.replace("http:", "https:")
    message, fix = lab.refused("ls", RUNYARD_URL=url)
    assert message.startswith(f"what listens at {url} does not speak TLS: ")
    assert fix == "write http:// in RUNYARD_URL, or the port of the proxy that speaks it"
