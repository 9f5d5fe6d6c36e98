"""A private PostgreSQL server for the test session, and a fresh database for each test that asks."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from runyard.store import open_store
from tests.labs import components, waiting

_NUMBERS = itertools.count(1)


class Server:
    """One server of our own: its data, its socket and a free loopback port, all gone after `stop`.

    `end` or `kill9`, and `begin` again, may be called as often as one likes: data and port stay the same.
    Most tests are not about losing power, so only a `durable` one waits for the disk.
    """

    def __init__(self, *, below: Path | None = None, durable: bool = False) -> None:
        self.bin = components.postgres_bin()
        self.directory = Path(tempfile.mkdtemp(prefix="runyard-pg-", dir=below))
        self._durable = durable
        (self.port,) = waiting.free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._template_name: str | None = None

    def start(self) -> None:
        if os.geteuid() == 0:
            shutil.chown(self.directory, _account())
        data = str(self.directory / "data")
        initdb = ["initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(self._as_account(initdb), cwd="/", check=True, capture_output=True)
        self.begin()

    def begin(self) -> None:
        """Returns when it lets people in."""
        self._process = subprocess.Popen(
            self._as_account(["postgres", "-D", str(self.directory / "data"), *self._options()]),
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._wait_ready()

    def end(self) -> None:
        """PostgreSQL's fast shutdown: whoever is connected is cut off."""
        assert self._process is not None, "it has not begun"
        self._process.send_signal(signal.SIGINT)  # setpriv has become postgres, so the pid is the server's
        self._process.wait(60)

    def kill9(self) -> None:
        """All its processes at once, as when the power goes."""
        import psutil

        assert self._process is not None, "it has not begun"
        first = psutil.Process(self._process.pid)
        first.suspend()  # it must not have more children than those that are seen now
        processes = [first, *first.children()]
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait(60)
        psutil.wait_procs(processes, 60)  # one that is left would keep the next server from its memory

    def stop(self) -> None:
        if self._process is not None:
            self.end()
        shutil.rmtree(self.directory, ignore_errors=True)

    def url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    @contextmanager
    def account(self, name: str, password: str) -> Iterator[None]:
        """One that is let in by its password alone, as others are not asked for any; dropped afterwards."""
        rules = self.directory / "data" / "pg_hba.conf"
        before = rules.read_text()
        rules.write_text(f"host all {name} 127.0.0.1/32 scram-sha-256\n{before}")
        self._reload()
        self._execute(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
        try:
            yield
        finally:
            rules.write_text(before)
            self._execute(f"DROP ROLE {name}")

    @contextmanager
    def database(self, owner: str = "postgres", encoding: str = "UTF8", *, tables: bool = False) -> Iterator[str]:
        """The address of a fresh database, with runyard's `tables` or empty; dropped afterwards."""
        name = f"test_{os.getpid()}_{next(_NUMBERS)}"
        # The plain locale of C goes with every encoding, and only the empty template with another one than its own.
        template = f"TEMPLATE template0 LOCALE 'C' ENCODING '{encoding}'" if encoding != "UTF8" else ""
        self._execute(f"CREATE DATABASE {name} OWNER {owner} {f'TEMPLATE {self._template()}' if tables else template}")
        try:
            yield self.url(name)
        finally:
            self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _template(self) -> str:
        """A database with runyard's tables. To copy it takes a third of the time that it takes to make them."""
        if self._template_name is None:
            name = "runyard_template"
            self._execute(f"CREATE DATABASE {name}")
            open_store(self.url(name)).close()
            self._template_name = name
        return self._template_name

    def _reload(self) -> None:
        """Returns when the new rules are those for whoever comes: to ask for it is not to have it."""
        asked = "SELECT pg_conf_load_time()"
        before = self._execute(asked)
        self._execute("SELECT pg_reload_conf()")
        waiting.until(lambda: self._execute(asked) != before, "the rules of PostgreSQL read again")

    def _execute(self, statement: str) -> Any:
        """The first row, where the statement has any."""
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            done = connection.execute(statement.encode())
            return done.fetchone() if done.description else None

    def _options(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.directory),
            "fsync": "on" if self._durable else "off",
            "max_connections": "60",
        }
        return [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]

    def _as_account(self, command: list[str]) -> list[str]:
        """PostgreSQL refuses to run as root."""
        words = [str(self.bin / command[0]), *command[1:]]
        if os.geteuid() != 0:
            return words
        account = pwd.getpwnam(_account())
        return ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups", *words]

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + 120
        while subprocess.run(self._ready_command(), capture_output=True).returncode != 0:
            if time.monotonic() > deadline or (self._process and self._process.poll() is not None):
                raise RuntimeError(f"PostgreSQL in {self.directory} does not start")
            time.sleep(0.05)

    def _ready_command(self) -> list[str]:
        return [str(self.bin / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]


def _account() -> str:
    """Debian's package makes the account `postgres`; every system has `nobody`."""
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return "nobody"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Callable[[], Server]]:
    """Starts the server when the first test asks for it, once per session (and per xdist worker)."""
    started: list[Server] = []

    def get() -> Server:
        if not started:
            started.append(Server())
            started[0].start()
        return started[0]

    yield get
    for server in started:
        server.stop()


@pytest.fixture
def postgres_url(component: Callable[[str], str], postgres_server: Any) -> Iterator[str]:
    """`postgresql://…` of a fresh, empty database on a real server."""
    component("postgresql")
    with postgres_server().database() as url:
        yield url


@pytest.fixture
def postgres_store(component: Callable[[str], str], postgres_server: Any) -> Iterator[str]:
    """`postgresql://…` of a fresh database that has the tables of a store already."""
    component("postgresql")
    with postgres_server().database(tables=True) as url:
        yield url
